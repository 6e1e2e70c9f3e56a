#pragma once

/// @file
/// @ingroup tile_values
/// @brief The activations of `Epilogue`, as functions of a value and of tiles, and `Activate`, which makes an epilogue of your own of
/// one.
///
/// They give the bits that `Gemm::launch` gives with `Epilogue::activation`: both are tessera/device/activations.cuh.

#include "tessera/detail/language.hpp"

#include "tessera/device/activations.cuh"
#include "tessera/tile/math.cuh"
#include "tessera/tile/tile.cuh"

namespace tessera::tile {

using activations::gelu;
using activations::gelu_tanh;
using activations::relu;
using activations::sigmoid;
using activations::silu;
using activations::tanh;

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
    TESSERA_TILE float operator()(float value) const { return activations::of<Kind>(value); }
    /// Returns that of the value and a bias.
    TESSERA_TILE float operator()(float value, float bias) const
    {
        return (*this)(tessera::detail::rounded_sum(value, bias));
    }
};
#endif

}  // namespace tessera::tile
