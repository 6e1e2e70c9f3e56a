#pragma once

/// The names that host code in the comments of the headers uses without declaring them.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <tessera/matrix_copy.hpp>
#include <tessera/mdspan.hpp>

#include "snippet_names.hpp"

extern const Device device;
extern const GemmProblem problem;
extern Stream other;
extern MatrixView<float> x, w, y;
extern MatrixView<const bf16> a16, b16;
extern MatrixView<bf16> d16;
extern DeviceBuffer<float> buffer;
extern DeviceBuffer<bf16> queries;
extern const std::int64_t batch, heads, tokens, features, rows, columns;
extern std::vector<float> elements;
extern void* pointer;
extern float* floats;
extern cuda::std::mdspan<float, cuda::std::dextents<std::int64_t, 2>> weights;
extern cuda::std::mdspan<float, cuda::std::dextents<std::int64_t, 2>, cuda::std::layout_stride> block;

struct Pool {
    void* allocate(std::size_t bytes, cudaStream_t stream);
    void deallocate(void* memory, std::size_t bytes, cudaStream_t stream);
};
extern Pool pool;

using namespace tessera::distributed;
extern DeviceBuffer<bf16> shard;
extern const int size, rank;
