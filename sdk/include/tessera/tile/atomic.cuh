#pragma once

/// @file
/// @ingroup tile_views
/// @brief `atomic_add`: adds a tile to an output that several places share.

#include "tessera/detail/language.hpp"

#include <type_traits>

#include "tessera/detail/refused.hpp"
#include "tessera/tile/memory.cuh"
#include "tessera/tile/tile.cuh"
#include "tessera/tile/view.cuh"

namespace tessera::tile {

/// Adds a tile to an output at a place, element by element, by atomic operations: other places may add to the same elements. A vector is
/// added where it meets the place's rows or columns, and a single matrix takes what all matrices of a batch have, so this is how a
/// program sums up over its tiles.
///
/// @code{.cpp}
/// tile::atomic_add(bias_gradient, at, tile::column_sums(gradient));  // tile::Output<float, 1, 128> bias_gradient
/// @endcode
/// The output keeps what it had before the launch: fill it with zeros. The order of the sums is not defined, nor are their last bits.
/// An output that a program adds to is not stored to as well.
/// @param to  of float
/// @param at  a place of another output, or of the same
template <class T, int Rows, int Columns, class Order, class E, class Machine, int PlaceRows, int PlaceColumns,
          detail::TileLike X>
TESSERA_TILE void atomic_add(const Output<T, Rows, Columns, Order, E>& to,
                             const Place<Machine, PlaceRows, PlaceColumns>& at, const X& x)
{
    using Facts = detail::facts_of<X>;
    static_assert(std::is_same_v<T, float>, "tessera: atomic_add adds to an Output of float");
    static_assert((Rows == PlaceRows || Rows == 1) && (Columns == PlaceColumns || Columns == 1),
                  "tessera: atomic_add adds at a place of the output's own shape, or a vector beside one");
    static_assert(Facts::rows == Rows && Facts::columns == Columns,
                  "tessera: the tile that is added has other rows or columns than the output's tiles");
    static_assert(std::is_same_v<typename Facts::element, T>,
                  "tessera: atomic_add adds a tile of float: convert<float>() it first");
    const detail::Spot spot = detail::spot_at(to, at);
    const auto& values = detail::settled(x);
    if constexpr (Facts::layout::registers > 0) {
        detail::add_values<detail::edges_of<Machine, Output<T, Rows, Columns, Order, E>>()>(values, to.memory(), spot);
    }
}
/// Refuses to compile: says what is added, and where.
template <class To, class At, class X>
TESSERA_TILE auto atomic_add(const To&, const At&, const X&)
{
    static_assert(tessera::detail::always_false<To, At, X>,
                  "tessera: atomic_add(output, at, tile) adds a tile to an Output at a place, one of tiles(cta)");
}

}  // namespace tessera::tile
