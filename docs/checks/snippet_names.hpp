#pragma once

/// The names that the code in the guide uses without declaring them.

#include <cstdio>
#include <tessera/distributed.hpp>
#include <tessera/tessera.hpp>
#include <tessera/tile/epilogue_program.hpp>
#include <tessera/tile/program.hpp>
#include <vector>

using namespace tessera;

extern const std::int64_t m, n, k;
extern Stream stream;
extern std::vector<float> host_a, host_b;
extern DeviceBuffer<float> a, b, c, d, bias;
struct Arena {
    void* allocate_async(std::size_t bytes, std::size_t alignment, cudaStream_t on);
    void deallocate_async(void* memory, std::size_t bytes, std::size_t alignment, cudaStream_t on);
};
extern Arena arena;
extern float* const raw;
using distributed::GridOrder, distributed::ShardedGemm, distributed::ShardedMatrix;
extern const distributed::Communicator communicator;
extern const distributed::ShardedMatrix sharded_x, w1, h, w2, sharded_y;
extern const MatrixView<float> own_x, own_w1, own_h;
void scale(DeviceSpan<float> values, float factor);
