#pragma once

/// @file
/// @ingroup device_activations
/// @brief The activations of `Epilogue`, as functions of one value.
///
/// `Gemm::launch`'s kernels and tile programs compute with them: both give the same bits. A kernel of your own can do so, too; so
/// can a source that NVRTC compiles. Each operation rounds once: the compiler contracts none.

#include "tessera/detail/language.hpp"

#ifndef __CUDACC_RTC__
#include <cmath>

#include "tessera/epilogue_kind.hpp"
#endif

namespace tessera {

namespace detail {

// Host code that calls a function of a tile program has these, too, and no kernel's bits.
__host__ __device__ __forceinline__ float rounded_product(float x, float y)
{
#ifdef __CUDA_ARCH__
    return __fmul_rn(x, y);
#else
    return x * y;
#endif
}
__host__ __device__ __forceinline__ float rounded_sum(float x, float y)
{
#ifdef __CUDA_ARCH__
    return __fadd_rn(x, y);
#else
    return x + y;
#endif
}
/// x * y + z.
__host__ __device__ __forceinline__ float fused(float x, float y, float z)
{
#ifdef __CUDA_ARCH__
    return __fmaf_rn(x, y, z);
#else
    return std::fma(x, y, z);
#endif
}
/// 2 to the power of x, at most 2 units in the last place off, and 0 instead of a subnormal value. Source: PTX ISA, "ex2".
__host__ __device__ __forceinline__ float approximate_power_of_two(float x)
{
#ifdef __CUDA_ARCH__
    float result = 0;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#else
    return std::exp2(x);
#endif
}
/// 1 / x, at most 1 unit in the last place off; a subnormal x counts as 0. Source: PTX ISA, "rcp.approx.ftz".
__host__ __device__ __forceinline__ float approximate_reciprocal(float x)
{
#ifdef __CUDA_ARCH__
    float result = 0;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#else
    return 1.0F / x;
#endif
}

/// dividend / (1 + 2^exponent), with the hardware's exponential and reciprocal.
__host__ __device__ __forceinline__ float logistic(float dividend, float exponent)
{
    const float divisor = rounded_sum(1.0F, approximate_power_of_two(exponent));
    return rounded_product(dividend, approximate_reciprocal(divisor));
}

inline constexpr float log2_of_e = 1.44269504F;

}  // namespace detail

/// The activations of `Epilogue`, as functions of one value.
namespace activations {

/// Returns max(x, 0). NaN stays NaN, unlike with fmaxf.
__host__ __device__ __forceinline__ float relu(float x) { return x < 0.0F ? 0.0F : x; }

/// Returns x/2 * (1 + erf(x / sqrt 2)), the exact form: off by less than 10 * 2^-24 |x|.
__host__ __device__ __forceinline__ float gelu(float x)
{
    // x * Phi(x) with the normal distribution function Phi(x) = 1 / (1 + 2^-z). z is an odd function of x, here x times a
    // polynomial in x^2. It is fitted to the least error of Phi: less than 0.61 * 2^-24 (docs/notes/kernels.md). erff would
    // take twice as many instructions, and lose the small results of negative x in 1 + erf.
    const float square = detail::rounded_product(x, x);
    float series = detail::fused(square, 0x1.5c3872p-28F, -0x1.99c658p-22F);
    series = detail::fused(square, series, 0x1.7fdb8ap-17F);
    series = detail::fused(square, series, -0x1.4ea9dep-13F);
    series = detail::fused(square, series, -0x1.8a7864p-14F);
    series = detail::fused(square, series, 0x1.ad6798p-4F);
    series = detail::fused(square, series, 0x1.26aeccp+1F);
    return detail::logistic(x, detail::rounded_product(-x, series));
}

/// Returns x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3))), the usual approximation of `gelu`.
__host__ __device__ __forceinline__ float gelu_tanh(float x)
{
    // x / (1 + 2^-z), where z is the argument of tanh in powers of two, doubled: nothing cancels.
    constexpr float linear = 2.3022082F;  // 2 sqrt(2/pi) log2(e)
    constexpr float cubic = 0.10294324F;  // that times 0.044715
    const float series = detail::fused(detail::rounded_product(x, x), cubic, linear);
    return detail::logistic(x, detail::rounded_product(-x, series));
}

/// Returns x / (1 + e^-x).
__host__ __device__ __forceinline__ float silu(float x)
{
    return detail::logistic(x, detail::rounded_product(x, -detail::log2_of_e));
}

/// Returns 1 / (1 + e^-x).
__host__ __device__ __forceinline__ float sigmoid(float x)
{
    return detail::logistic(1.0F, detail::rounded_product(x, -detail::log2_of_e));
}

/// Returns the hyperbolic tangent: less than 10 * 2^-24 off, relative to it.
__host__ __device__ __forceinline__ float tanh(float x)
{
    // 1 - 2 / (1 + e^(2 |x|)) with the sign of x, or a polynomial for a small x, where that would cancel.
    constexpr float largest_of_polynomial = 0.6F;
    const float square = detail::rounded_product(x, x);
    float series = detail::fused(square, -0x1.8258bp-8F, 0x1.54b8b4p-6F);
    series = detail::fused(square, series, -0x1.b898e2p-5F);
    series = detail::fused(square, series, 0x1.1109aep-3F);
    series = detail::fused(square, series, -0x1.55553ep-2F);
    const float small = detail::fused(detail::rounded_product(square, series), x, x);
    const float quotient = detail::logistic(2.0F, detail::rounded_product(fabsf(x), 2 * detail::log2_of_e));
    const float large = detail::rounded_sum(1.0F, -quotient);
    return copysignf(fabsf(x) < largest_of_polynomial ? small : large, x);  // also of -0
}

#ifndef __CUDACC_RTC__
/// Returns the activation `Kind` of x.
template <Activation Kind>
__host__ __device__ __forceinline__ float of(float x)
{
    switch (Kind) {
        case Activation::none: return x;
        case Activation::relu: return relu(x);
        case Activation::gelu: return gelu(x);
        case Activation::silu: return silu(x);
        case Activation::gelu_tanh: return gelu_tanh(x);
        case Activation::sigmoid: return sigmoid(x);
        case Activation::tanh: return tanh(x);
    }
    return x;
}
#endif

}  // namespace activations

}  // namespace tessera
