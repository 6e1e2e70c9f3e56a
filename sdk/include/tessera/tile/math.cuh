#pragma once

/// @file
/// @ingroup tile_values
/// @brief Functions of tiles, element by element, in float; `zeros`, `full`, `iota_rows`, `iota_columns`.

#include "tessera/detail/language.hpp"

#include <cmath>
#include <type_traits>

#include "tessera/device/activations.cuh"
#include "tessera/tile/cta.cuh"
#include "tessera/tile/tile.cuh"

namespace tessera::tile {

namespace detail {

template <class X>
TESSERA_TILE constexpr void require_float()
{
    static_assert(std::is_same_v<typename facts_of<X>::element, float>,
                  "tessera: functions of tiles compute in float: convert<float>() the tile first");
}

}  // namespace detail

namespace detail {

/// e to the power of x. The exponent is rounded once: an error of up to |x| / 2 units in the last place more.
TESSERA_TILE float power_of_e(float x)
{
    return tessera::detail::approximate_power_of_two(x * tessera::detail::log2_of_e);
}

}  // namespace detail

#define TESSERA_DETAIL_TILE_FUNCTION(NAME, EXPRESSION)                  \
    template <detail::TileLike X>                                       \
    TESSERA_TILE auto NAME(const X& x)                                  \
    {                                                                   \
        detail::require_float<X>();                                     \
        return map(x, [](float value) -> float { return EXPRESSION; }); \
    }

/// e to the power of each element x: at most 2 + |x| units in the last place off, and 0 instead of a subnormal value.
TESSERA_DETAIL_TILE_FUNCTION(exp, detail::power_of_e(value))
/// 2 to the power of each element: at most 2 units in the last place off, and 0 instead of a subnormal value.
TESSERA_DETAIL_TILE_FUNCTION(exp2, tessera::detail::approximate_power_of_two(value))
/// The natural logarithm.
TESSERA_DETAIL_TILE_FUNCTION(log, logf(value))
/// The logarithm to base 2.
TESSERA_DETAIL_TILE_FUNCTION(log2, log2f(value))
/// The error function.
TESSERA_DETAIL_TILE_FUNCTION(erf, erff(value))
/// The square root.
TESSERA_DETAIL_TILE_FUNCTION(sqrt, sqrtf(value))
/// One divided by the square root.
TESSERA_DETAIL_TILE_FUNCTION(rsqrt, 1.0F / sqrtf(value))
/// The absolute value.
TESSERA_DETAIL_TILE_FUNCTION(abs, fabsf(value))
/// The sine.
TESSERA_DETAIL_TILE_FUNCTION(sin, sinf(value))
/// The cosine.
TESSERA_DETAIL_TILE_FUNCTION(cos, cosf(value))
#undef TESSERA_DETAIL_TILE_FUNCTION

/// Returns the larger of the elements of two tiles.
template <detail::TileLike X, detail::TileLike Y>
TESSERA_TILE auto max(const X& x, const Y& y)
{
    detail::require_float<X>();
    return zip([](float one, float other) { return fmaxf(one, other); }, x, y);
}
/// Returns the smaller of the elements of two tiles.
template <detail::TileLike X, detail::TileLike Y>
TESSERA_TILE auto min(const X& x, const Y& y)
{
    detail::require_float<X>();
    return zip([](float one, float other) { return fminf(one, other); }, x, y);
}
/// Refuses to compile for a tile and one value.
template <class X, class Y>
    requires(detail::TileLike<X> != detail::TileLike<Y>)
TESSERA_TILE auto max(const X&, const Y&)
{
    static_assert(tessera::detail::always_false<X>,
                  "tessera: max and min take two tiles: full_like(tile, value) is one of a single value");
}
/// Refuses to compile for a tile and one value.
template <class X, class Y>
    requires(detail::TileLike<X> != detail::TileLike<Y>)
TESSERA_TILE auto min(const X&, const Y&)
{
    static_assert(tessera::detail::always_false<X>,
                  "tessera: max and min take two tiles: full_like(tile, value) is one of a single value");
}

/// Returns a tile of one value.
template <class T, int Rows, int Columns, class Machine>
TESSERA_TILE auto full(Cta<Machine>, T value)
{
    using Layout = typename detail::register_layout<Machine, Rows, Columns>::type;
    Tile<T, Rows, Columns, Layout> result;
    if constexpr (Layout::registers > 0) {
        detail::unrolled<Layout::registers>([&](int i) { detail::Access::values(result)[i] = value; });
    }
    return result;
}

/// Refuses to compile for a value that does not become a T by itself.
template <class T, int Rows, int Columns, class Machine, class Value>
    requires(!std::is_convertible_v<Value, T>)
TESSERA_TILE auto full(Cta<Machine>, const Value&)
{
    static_assert(tessera::detail::always_false<Value>,
                  "tessera: full<T>() takes a value of type T, and narrows none: T(value)");
}

/// Returns a tile of the shape and layout of another, of one value.
template <detail::TileLike X, class T>
TESSERA_TILE auto full_like(const X& like, T value)
{
    return map(like, [value](const auto&) { return value; });
}

/// Returns each element's row in its tile, as a tile like another.
template <detail::TileLike X>
TESSERA_TILE auto iota_rows(const X&)
{
    using Facts = detail::facts_of<X>;
    using Layout = typename Facts::layout;
    Tile<int, Facts::rows, Facts::columns, Layout> result;
    if constexpr (Layout::registers > 0) {
        detail::unrolled<Layout::registers>([&](int i) { detail::Access::values(result)[i] = Layout::row(i); });
    }
    return result;
}
/// Returns each element's column in its tile, as a tile like another.
template <detail::TileLike X>
TESSERA_TILE auto iota_columns(const X&)
{
    using Facts = detail::facts_of<X>;
    using Layout = typename Facts::layout;
    Tile<int, Facts::rows, Facts::columns, Layout> result;
    if constexpr (Layout::registers > 0) {
        detail::unrolled<Layout::registers>([&](int i) { detail::Access::values(result)[i] = Layout::column(i); });
    }
    return result;
}

/// Returns a vector as a whole tile: each column or row of it is the vector.
template <int Rows, int Columns, class T, int R, int C, class Layout>
TESSERA_TILE auto broadcast(const Tile<T, R, C, Layout>& vector)
{
    static_assert((R == Rows || R == 1) && (C == Columns || C == 1),
                  "tessera: a vector that is broadcast has the rows or the columns of the result, and 1 of the other");
    using Wide = typename detail::broadcast_layout<Rows, Columns, Layout>::type;
    Tile<T, Rows, Columns, Wide> result;
    const auto aligned = detail::aligned<Wide, Rows, Columns>(vector);
    if constexpr (Wide::registers > 0) {
        detail::unrolled<Wide::registers>(
            [&](int i) { detail::Access::values(result)[i] = detail::met<Wide, Rows, Columns>(aligned, i); });
    }
    return result;
}

}  // namespace tessera::tile
