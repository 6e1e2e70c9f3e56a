#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "peers/activations.hpp"

namespace tessera::bench {
namespace {

constexpr unsigned threads_per_block = 256;

__device__ float silu(float x) { return __fdividef(x, 1 + __expf(-x)); }

/// 16 bytes of a row, or one element. All loads of a thread come before its arithmetic.
template <class T, int Elements>
struct alignas(sizeof(T) * Elements) Vector {
    T elements[Elements];
};

/// One vector per thread: x is the row, y the group of columns. Without `factors`, d = silu(gates).
template <class T, int Elements>
__global__ void activate(const T* gates, const T* factors, std::int64_t stride, T* d, std::int64_t columns)
{
    using Part = Vector<T, Elements>;
    const std::int64_t column = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * Elements;
    if (column >= columns) {
        return;
    }
    const std::int64_t row = blockIdx.x;
    Part part = *reinterpret_cast<const Part*>(gates + row * stride + column);
    Part factor{};
    if (factors != nullptr) {
        factor = *reinterpret_cast<const Part*>(factors + row * stride + column);
    }
#pragma unroll
    for (int i = 0; i < Elements; ++i) {
        const float value = silu(static_cast<float>(part.elements[i]));
        part.elements[i] = T(factors != nullptr ? value * static_cast<float>(factor.elements[i]) : value);
    }
    *reinterpret_cast<Part*>(d + row * columns + column) = part;
}

template <class T>
void enqueue(StreamRef stream, const void* pairs, bool gated, void* d, std::int64_t rows, std::int64_t columns)
{
    constexpr int wide = 16 / sizeof(T);
    const auto* const gates = static_cast<const T*>(pairs);
    const T* const factors = gated ? gates + columns : nullptr;
    const std::int64_t stride = gated ? 2 * columns : columns;
    const auto grid = [&](int elements) {
        const std::int64_t vectors = (columns + elements - 1) / elements;
        return dim3(static_cast<unsigned>(rows),
                    static_cast<unsigned>((vectors + threads_per_block - 1) / threads_per_block));
    };
    // The matrices begin at allocations.
    if (columns % wide == 0) {
        activate<T, wide>
            <<<grid(wide), threads_per_block, 0, stream.get()>>>(gates, factors, stride, static_cast<T*>(d), columns);
    } else {
        activate<T, 1>
            <<<grid(1), threads_per_block, 0, stream.get()>>>(gates, factors, stride, static_cast<T*>(d), columns);
    }
    if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) {
        throw std::runtime_error(std::string("an activation after a product failed: ") + cudaGetErrorString(status));
    }
}

void enqueue(StreamRef stream, ElementType type, const void* pairs, bool gated, void* d, std::int64_t rows,
             std::int64_t columns)
{
    switch (type) {
        case ElementType::f16: enqueue<__half>(stream, pairs, gated, d, rows, columns); break;
        case ElementType::bf16: enqueue<__nv_bfloat16>(stream, pairs, gated, d, rows, columns); break;
        case ElementType::f32: enqueue<float>(stream, pairs, gated, d, rows, columns); break;
        default: throw std::runtime_error("an activation after a product is for f32, f16 and bf16");
    }
}

}  // namespace

void enqueue_silu(StreamRef stream, ElementType type, void* d, std::int64_t rows, std::int64_t columns)
{
    enqueue(stream, type, d, false, d, rows, columns);
}

void enqueue_swiglu(StreamRef stream, ElementType type, const void* pairs, void* d, std::int64_t rows,
                    std::int64_t columns)
{
    enqueue(stream, type, pairs, true, d, rows, columns);
}

}  // namespace tessera::bench
