#include "epilogue_kernels.hpp"

#include "kernels/gemm/epilogue_operations.cuh"

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
    constexpr double u = 0x1p-24;
    constexpr double smallest = 0x1p-149;
    float value[1] = {x};
    kernels::detail::activate(value, kind);
    switch (kind) {
        case Activation::silu: return has_bits(value[0], __fdiv_rn(x, __fadd_rn(1.0F, expf(-x))));
        case Activation::sigmoid: return has_bits(value[0], __fdiv_rn(1.0F, __fadd_rn(1.0F, expf(-x))));
        case Activation::tanh: {
            const double expected = tanh(static_cast<double>(x));
            return is_within(8 * u * fabs(expected) + smallest, value[0], expected);
        }
        case Activation::gelu_tanh: {
            const double wide = x;
            const double z = 2 * 0.79788456080286535588 * (wide + 0.044715 * wide * wide * wide);
            const double expected = wide / (1 + exp(-z));
            // Where the quotient's divisor is at least 2^126, the result is 0.
            const double overflowed = z < -87.2 ? 89 * 0x1p-128 : 0;
            return is_within(u * fabs(wide) + 8.1 * u * fabs(expected) + overflowed + smallest, value[0], expected);
        }
        default: return false;
    }
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
