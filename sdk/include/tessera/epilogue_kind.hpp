#pragma once

/// The kinds of work that a product's epilogue can do, as values for host and device.

#include "tessera/detail/language.hpp"

#include <cstdint>
#include <string_view>

namespace tessera {

/// What is applied to alpha * A*B + beta * C + bias, element by element.
enum class Activation : std::uint8_t {
    none = 0,
    relu = 1,  ///< max(x, 0); NaN stays NaN
    gelu = 2,  ///< x/2 * (1 + erf(x / sqrt 2)), the exact form
    silu = 3,  ///< x / (1 + exp(-x))
};

/// "none", "relu", "gelu" or "silu".
constexpr std::string_view to_string(Activation activation) noexcept
{
    switch (activation) {
        case Activation::none: return "none";
        case Activation::relu: return "relu";
        case Activation::gelu: return "gelu";
        case Activation::silu: return "silu";
    }
    return "unknown";
}

/// Which dimension of D a bias vector runs along.
enum class BiasAxis : std::uint8_t {
    none = 0,
    per_row = 1,     ///< element i is added to all of row i: m elements
    per_column = 2,  ///< element j is added to all of column j: n elements
};

}  // namespace tessera
