#include "epilogue_kernels.hpp"

#include "kernels/gemm/epilogue_operations.cuh"

namespace tessera::test {

namespace {

__global__ void compare_silu(std::uint32_t stride, std::uint64_t count, unsigned long long* different)
{
    const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
    unsigned found = 0;
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += threads) {
        const float x = __uint_as_float(static_cast<std::uint32_t>(i * stride));
        const float expected = __fdiv_rn(x, __fadd_rn(1.0F, expf(-x)));
        const float actual = kernels::detail::silu(x);
        const bool same = isnan(expected) ? isnan(actual) : __float_as_uint(expected) == __float_as_uint(actual);
        found += same ? 0 : 1;
    }
    if (found > 0) {
        atomicAdd(different, static_cast<unsigned long long>(found));
    }
}

}  // namespace

Kernel<std::uint32_t, std::uint64_t, unsigned long long*> compare_silu_kernel() { return &compare_silu; }

}  // namespace tessera::test
