#pragma once

/// @file
/// @ingroup tile_products
/// @brief `Sums`: what products are added to.

#include "tessera/detail/language.hpp"

#include <type_traits>

#include "tessera/tile/cta.cuh"
#include "tessera/tile/exchange.cuh"
#include "tessera/tile/tile.cuh"

namespace tessera::tile {

/// Sums of products. They are a tile of float whose values may still be on their way: reading them waits.
template <class Machine, int Rows, int Columns>
class Sums : public detail::NeitherArrayNorCondition {
public:
    using Layout = typename detail::Layouts<Machine>::template Of<
        detail::Fragments<Rows, Columns, Machine::warps_m, Machine::warps_n>>;  ///< for the library
    using Values = Tile<float, Rows, Columns, Layout>;                          ///< the same as a tile

    /// For the library.
    TESSERA_TILE Sums(const Values& values, detail::RingState& ring) : values_(values), ring_(&ring) {}
    /// Replaces the sums.
    template <class X>
        requires(!std::is_same_v<X, Sums>)
    TESSERA_TILE Sums& operator=(const X& values)
    {
        detail::require_replacement<float, Rows, Columns, X>();
        values_ = detail::aligned<Layout, Rows, Columns>(detail::settled(values));
        return *this;
    }

    /// For the library.
    TESSERA_TILE Values& values() { return values_; }
    /// For the library.
    TESSERA_TILE const Values& values() const { return values_; }
    /// For the library.
    TESSERA_TILE detail::RingState& ring() const { return *ring_; }

private:
    Values values_;
    detail::RingState* ring_;
};

namespace detail {

template <class X>
inline constexpr bool is_sums = false;
template <class Machine, int R, int C>
inline constexpr bool is_sums<Sums<Machine, R, C>> = true;

}  // namespace detail

}  // namespace tessera::tile
