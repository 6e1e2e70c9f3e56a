#include "epilogue_kernels.hpp"

#include "kernels/gemm/epilogue_operations.cuh"
#include "support/error_bound.hpp"

namespace tessera::test {

namespace {

__device__ bool has_bits(float actual, float expected)
{
    return isnan(expected) ? isnan(actual) : __float_as_uint(expected) == __float_as_uint(actual);
}

__device__ bool is_within(double error, float actual, double expected)
{
    // Infinities and NaN must be the same, and so must the sign of zero and of everything else.
    if (isnan(expected) || isinf(expected)) {
        return has_bits(actual, static_cast<float>(expected));
    }
    return fabs(actual - expected) <= error && signbit(actual) == signbit(expected);
}

__device__ bool is_right(Activation kind, float x)
{
    float value[1] = {x};
    kernels::detail::activate(value, kind);
    const Bounded expected = activated({.value = x, .error = 0}, kind);
    return is_within(expected.error, value[0], expected.value);
}

__global__ void check_activation(Activation kind, std::uint32_t stride, std::uint64_t count,
                                 unsigned long long* different)
{
    const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
    unsigned found = 0;
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += threads) {
        found += is_right(kind, __uint_as_float(static_cast<std::uint32_t>(i * stride))) ? 0 : 1;
    }
    if (found > 0) {
        atomicAdd(different, static_cast<unsigned long long>(found));
    }
}

}  // namespace

Kernel<Activation, std::uint32_t, std::uint64_t, unsigned long long*> check_activation_kernel()
{
    return &check_activation;
}

}  // namespace tessera::test
