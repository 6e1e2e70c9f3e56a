#pragma once

/// @file
/// @ingroup host_gemm
/// @brief The operations of a product's epilogue, as values for host and device.

#include "tessera/detail/language.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace tessera {

/// The function that is applied to each element of alpha * A*B + beta * C + bias.
enum class Activation : std::uint8_t {
    none = 0,       ///< x itself
    relu = 1,       ///< max(x, 0); NaN stays NaN
    gelu = 2,       ///< x/2 * (1 + erf(x / sqrt 2)), the exact form
    silu = 3,       ///< x / (1 + exp(-x))
    gelu_tanh = 4,  ///< x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3))), the usual approximation of `gelu`
    sigmoid = 5,    ///< 1 / (1 + exp(-x))
    tanh = 6,       ///< the hyperbolic tangent
};

/// Returns the value's name, such as "gelu_tanh".
constexpr std::string_view to_string(Activation activation) noexcept
{
    switch (activation) {
        case Activation::none: return "none";
        case Activation::relu: return "relu";
        case Activation::gelu: return "gelu";
        case Activation::silu: return "silu";
        case Activation::gelu_tanh: return "gelu_tanh";
        case Activation::sigmoid: return "sigmoid";
        case Activation::tanh: return "tanh";
    }
    return "unknown";
}

/// All activations, in the order of their numbers.
inline constexpr std::array all_activations{Activation::none, Activation::relu,      Activation::gelu,
                                            Activation::silu, Activation::gelu_tanh, Activation::sigmoid,
                                            Activation::tanh};

/// How the columns of A*B form pairs (gate, up), each of which becomes one element act(gate) * up of D: SwiGLU with
/// `Activation::silu`, GeGLU with `gelu`. D then has half as many columns as B.
enum class Gating : std::uint8_t {
    none = 0,          ///< no pairs: D has all columns
    interleaved = 1,   ///< columns 2j (gate) and 2j + 1 (up) become column j
    side_by_side = 2,  ///< columns j (gate) and j + n/2 (up) become column j
};

/// Returns "none", "interleaved" or "side_by_side".
constexpr std::string_view to_string(Gating gating) noexcept
{
    switch (gating) {
        case Gating::none: return "none";
        case Gating::interleaved: return "interleaved";
        case Gating::side_by_side: return "side_by_side";
    }
    return "unknown";
}

/// The dimension of D that a bias vector runs along.
enum class BiasAxis : std::uint8_t {
    none = 0,        ///< no bias
    per_row = 1,     ///< m elements: element i is added to all of row i
    per_column = 2,  ///< n elements: element j is added to all of column j
};

}  // namespace tessera
