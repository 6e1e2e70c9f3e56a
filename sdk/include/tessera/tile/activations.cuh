#pragma once

/// @file
/// @ingroup tile_values
/// @brief The activations of `Epilogue`, as functions of a value and of tiles, and `Activate`, which makes an epilogue of your own of
/// one.
///
/// They give the bits that `Gemm::launch` gives with `Epilogue::activation`: the arithmetic is that of its kernels
/// (kernels/gemm/epilogue_operations.cuh), and a test compares the bits.

#include "tessera/detail/language.hpp"

#include <cmath>

#ifndef __CUDACC_RTC__
#include "tessera/epilogue_kind.hpp"
#endif
#include "tessera/tile/math.cuh"
#include "tessera/tile/tile.cuh"

namespace tessera::tile {

namespace detail::rounded {

// What the compiler does not contract: each operation rounds once, as in the kernels.
TESSERA_TILE float product(float x, float y)
{
#ifdef __CUDA_ARCH__
    return __fmul_rn(x, y);
#else
    return x * y;
#endif
}
TESSERA_TILE float added(float x, float y)
{
#ifdef __CUDA_ARCH__
    return __fadd_rn(x, y);
#else
    return x + y;
#endif
}
TESSERA_TILE float fused(float x, float y, float z)
{
#ifdef __CUDA_ARCH__
    return __fmaf_rn(x, y, z);
#else
    return std::fma(x, y, z);
#endif
}
/// 1 / x, at most 1 unit in the last place off; a subnormal x counts as 0. Source: PTX ISA, "rcp.approx.ftz".
TESSERA_TILE float approximate_reciprocal(float x)
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
TESSERA_TILE float logistic(float dividend, float exponent)
{
    return product(dividend, approximate_reciprocal(added(1.0F, power_of_two(exponent))));
}

inline constexpr float log2_of_e = 1.44269504F;

}  // namespace detail::rounded

/// max(x, 0); NaN stays NaN.
TESSERA_TILE float relu(float x) { return x < 0.0F ? 0.0F : x; }
/// x/2 * (1 + erf(x / sqrt 2)), the exact form: off by less than 10 * 2^-24 |x|.
TESSERA_TILE float gelu(float x)
{
    // The quotient is 1 / (1 + 2^e). e is x times a polynomial, fitted to the least error of the quotient.
    const float square = detail::rounded::product(x, x);
    float series = detail::rounded::fused(square, 0x1.5c3872p-28F, -0x1.99c658p-22F);
    series = detail::rounded::fused(square, series, 0x1.7fdb8ap-17F);
    series = detail::rounded::fused(square, series, -0x1.4ea9dep-13F);
    series = detail::rounded::fused(square, series, -0x1.8a7864p-14F);
    series = detail::rounded::fused(square, series, 0x1.ad6798p-4F);
    series = detail::rounded::fused(square, series, 0x1.26aeccp+1F);
    return detail::rounded::logistic(x, detail::rounded::product(-x, series));
}
/// x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3))), the usual approximation of `gelu`.
TESSERA_TILE float gelu_tanh(float x)
{
    // x / (1 + 2^e), where e is the argument of tanh in powers of two, doubled: nothing cancels.
    constexpr float linear = 2.3022082F;  // 2 sqrt(2/pi) log2(e)
    constexpr float cubic = 0.10294324F;  // that times 0.044715
    const float series = detail::rounded::fused(detail::rounded::product(x, x), cubic, linear);
    return detail::rounded::logistic(x, detail::rounded::product(-x, series));
}
/// x / (1 + e^-x).
TESSERA_TILE float silu(float x)
{
    return detail::rounded::logistic(x, detail::rounded::product(x, -detail::rounded::log2_of_e));
}
/// 1 / (1 + e^-x).
TESSERA_TILE float sigmoid(float x)
{
    return detail::rounded::logistic(1.0F, detail::rounded::product(x, -detail::rounded::log2_of_e));
}
/// The hyperbolic tangent: less than 10 * 2^-24 off, relative to it.
TESSERA_TILE float tanh(float x)
{
    constexpr float largest_of_polynomial = 0.6F;
    const float t = detail::rounded::logistic(2.0F, detail::rounded::product(fabsf(x), 2 * detail::rounded::log2_of_e));
    const float square = detail::rounded::product(x, x);
    float series = detail::rounded::fused(square, -0x1.8258bp-8F, 0x1.54b8b4p-6F);
    series = detail::rounded::fused(square, series, -0x1.b898e2p-5F);
    series = detail::rounded::fused(square, series, 0x1.1109aep-3F);
    series = detail::rounded::fused(square, series, -0x1.55553ep-2F);
    const float small = detail::rounded::fused(detail::rounded::product(square, series), x, x);
    return copysignf(fabsf(x) < largest_of_polynomial ? small : detail::rounded::added(1.0F, -t), x);
}

#define TESSERA_DETAIL_TILE_ACTIVATION(NAME)                             \
    template <detail::TileLike X>                                        \
    TESSERA_TILE auto NAME(const X& x)                                   \
    {                                                                    \
        detail::require_float<X>();                                      \
        return map(x, [](float value) -> float { return NAME(value); }); \
    }
/// max(x, 0) of each element.
TESSERA_DETAIL_TILE_ACTIVATION(relu)
/// `gelu` of each element.
TESSERA_DETAIL_TILE_ACTIVATION(gelu)
/// `gelu_tanh` of each element.
TESSERA_DETAIL_TILE_ACTIVATION(gelu_tanh)
/// x / (1 + e^-x) of each element.
TESSERA_DETAIL_TILE_ACTIVATION(silu)
/// 1 / (1 + e^-x) of each element.
TESSERA_DETAIL_TILE_ACTIVATION(sigmoid)
/// The hyperbolic tangent of each element.
TESSERA_DETAIL_TILE_ACTIVATION(tanh)
#undef TESSERA_DETAIL_TILE_ACTIVATION

#ifndef __CUDACC_RTC__
/// An activation as an epilogue of your own, alone or of the value and a bias.
///
/// @code{.cpp}
/// void layer(StreamRef stream, MatrixView<const bf16> x, MatrixView<const bf16> w, DeviceSpan<const float> bias,
///            MatrixView<bf16> y)
/// {
///     Gemm::launch(stream, x, w, y, tile::epilogue(tile::Activate<Activation::gelu>{}, tile::per_column(bias)));
/// }
/// @endcode
/// @tparam Kind  which one
template <Activation Kind>
struct Activate {
    /// Returns the activation of a value.
    TESSERA_TILE float operator()(float value) const
    {
        if constexpr (Kind == Activation::relu) {
            return relu(value);
        } else if constexpr (Kind == Activation::gelu) {
            return gelu(value);
        } else if constexpr (Kind == Activation::silu) {
            return silu(value);
        } else if constexpr (Kind == Activation::gelu_tanh) {
            return gelu_tanh(value);
        } else if constexpr (Kind == Activation::sigmoid) {
            return sigmoid(value);
        } else if constexpr (Kind == Activation::tanh) {
            return tanh(value);
        } else {
            return value;
        }
    }
    /// Returns that of the value and a bias.
    TESSERA_TILE float operator()(float value, float bias) const
    {
        return (*this)(detail::rounded::added(value, bias));
    }
};
#endif

}  // namespace tessera::tile
