#pragma once

/// Error bounds of floating-point sums. Results are checked against what the arithmetic guarantees, not against a
/// tolerance that somebody picked.
///
/// Source: N. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, chapters 2 and 3.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "tessera/element.hpp"
#include "tessera/epilogue_kind.hpp"

namespace examples {

/// u: the largest relative error of one rounding to nearest.
inline constexpr double f32_roundoff = tessera::element_traits<tessera::f32>::unit_roundoff;
inline constexpr double f64_roundoff = 0x1p-53;

/// The distance of neighbouring numbers near 0, where rounding errors are no longer relative.
inline constexpr double f32_smallest = 0x1p-149;

/// gamma_n = n*u / (1 - n*u): bounds the relative error of a term that passes through n roundings, in any order.
/// Infinite where n is too large for a bound.
inline double gamma(double n, double unit_roundoff)
{
    const double nu = n * unit_roundoff;
    return nu < 1.0 ? nu / (1.0 - nu) : std::numeric_limits<double>::infinity();
}

/// What the tensor cores of compute capability 9.0 may lose of a sum of k products of 8-bit numbers, relative to the
/// sum of their magnitudes. An instruction adds up to 32 products and the sum so far. It truncates each of them, and
/// the result, 13 binary places below the largest. Every 128 products the sum continues in float32
/// (`Fp8Accumulation::two_level`).
inline double float8_tensor_core_loss(std::int64_t k)
{
    constexpr std::int64_t terms = 32;
    constexpr std::int64_t longest = 128;
    const std::int64_t instructions = (std::min(k, longest) + terms - 1) / terms;
    return static_cast<double>(instructions) * static_cast<double>(terms + 2) * 0x1p-13;
}

/// Half the distance of neighbouring numbers of `type`, an output type, at `magnitude`: the error of one rounding to
/// it.
inline double rounding_error(double magnitude, tessera::ElementType type)
{
    switch (type) {
        case tessera::ElementType::f16: return std::fmax(magnitude * 0x1p-11, 0x1p-25);
        case tessera::ElementType::bf16: return std::fmax(magnitude * 0x1p-8, 0x1p-134);
        default: break;
    }
    return std::fmax(magnitude * f32_roundoff, f32_smallest / 2.0);
}

/// The activation in float64.
inline double activate(double x, tessera::Activation activation)
{
    switch (activation) {
        case tessera::Activation::relu: return x < 0.0 ? 0.0 : x;
        case tessera::Activation::gelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
        case tessera::Activation::silu: return x / (1.0 + std::exp(-x));
        case tessera::Activation::gelu_tanh:
            return x / (1.0 + std::exp(-2.0 * std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
        case tessera::Activation::sigmoid: return 1.0 / (1.0 + std::exp(-x));
        case tessera::Activation::tanh: return std::tanh(x);
        case tessera::Activation::none: break;
    }
    return x;
}

/// The error of an activation evaluated in float32 where `x` has an error of at most `error`.
///
/// An error of x grows by at most the activation's largest slope: 1 for ReLU, less than 1.13 for GELU, less than 1.10
/// for SiLU. All but ReLU are x / (1 + exp(-z)). Of that, the exponential is off by 4u, the reciprocal by 2u, and sum and product
/// round by 1u each: 8u. The exponent's roundings move the result by less than 0.5u*|x| (SiLU, GELU) or 0.9u*|x| (gelu_tanh), and GELU's polynomial by
/// 0.61u*|x|. tanh and sigmoid are relative to the result, which is at most |x| or 1. Where exp overflows, the result is 0
/// instead of less than 2^-118*|x|.
inline double activation_error(double x, double error, tessera::Activation activation)
{
    const double evaluation = f32_roundoff * (std::fabs(x) + error);
    switch (activation) {
        case tessera::Activation::gelu: return 1.13 * error + 10.0 * evaluation + f32_smallest;
        case tessera::Activation::silu: return 1.10 * error + 9.0 * evaluation + f32_smallest;
        case tessera::Activation::gelu_tanh: return 1.13 * error + 9.0 * evaluation + f32_smallest;
        case tessera::Activation::sigmoid: return 0.25 * error + 9.0 * f32_roundoff + f32_smallest;
        case tessera::Activation::tanh: return error + 10.0 * evaluation + f32_smallest;
        case tessera::Activation::relu:
        case tessera::Activation::none: break;
    }
    return error;
}

}  // namespace examples
