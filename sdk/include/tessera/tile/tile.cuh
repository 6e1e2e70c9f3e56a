#pragma once

/// @file
/// @ingroup tile_values
/// @brief `Tile<T, Rows, Columns>`: a matrix of values that the threads of a CTA have together; `map`, `zip` and arithmetic.
///
/// A shape is part of the type. Arithmetic works element by element; a column vector (Rows, 1) or a row vector (1, Columns) meets
/// each column or row of a tile. Narrow elements widen to float; `convert` narrows.
///
/// @code{.cpp}
/// const auto values = convert<float>(x.load(at));          // (4, 1024)
/// const auto mean = row_sums(values) / 1024.0F;            // (4, 1)
/// const auto centred = values - mean;                      // (4, 1024)
/// y.store(at, convert<bf16>(map(centred, [](float v) { return v * v; })));
/// @endcode

#include "tessera/detail/language.hpp"

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "tessera/detail/refused.hpp"
#include "tessera/element.hpp"
#include "tessera/tile/layout.cuh"
#include "tessera/tile/plan.hpp"

/// Begins a function of a tile program. The host plans with it, the GPU runs it.
#define TESSERA_TILE __host__ __device__ __forceinline__

namespace tessera::tile {

namespace detail {

template <class T, int Count>
struct Values {
    T of[Count];
    TESSERA_TILE T& operator[](int i) { return of[i]; }
    TESSERA_TILE const T& operator[](int i) const { return of[i]; }
};
template <class T>
struct Values<T, 0> {};

struct Access;

/// What tiles are not: arrays and conditions. Each use says what to write instead.
// Functions that refuse return `auto`: the compiler reads their bodies at once, and no other error comes first.
struct NeitherArrayNorCondition {
    template <class Index>
    TESSERA_TILE auto operator[](const Index&) const
    {
        static_assert(
            tessera::detail::always_false<Index>,
            "tessera: a tile's elements are spread over threads and have no addresses: map() and zip() compute "
            "with each, row_sums() and others combine them, iota_rows() and iota_columns() say where they are");
    }
    template <class... Indices>
    TESSERA_TILE auto operator()(const Indices&...) const
    {
        static_assert(
            tessera::detail::always_false<Indices...>,
            "tessera: a tile's elements are spread over threads and have no addresses: map() and zip() compute "
            "with each, row_sums() and others combine them, iota_rows() and iota_columns() say where they are");
    }
    template <std::same_as<bool> To>
    TESSERA_TILE explicit operator To() const
    {
        static_assert(tessera::detail::always_false<To>,
                      "tessera: a tile has many values and is no condition: where(condition, x, y) chooses for each "
                      "element, and condition == false negates one");
        return false;
    }
};

}  // namespace detail

/// Values of a matrix, spread over the threads of a CTA.
///
/// A value: it may be copied, and its copies are independent. Its elements have no addresses.
/// @tparam T            the element type
/// @tparam TileRows     rows
/// @tparam TileColumns  columns
/// @tparam Layout       which thread has what; the library chooses it
template <class T, int TileRows, int TileColumns, class Layout>
class Tile : public detail::NeitherArrayNorCondition {
public:
    using element_type = T;                      ///< of a value
    static constexpr int rows = TileRows;        ///< rows
    static constexpr int columns = TileColumns;  ///< columns

    /// Values that are not set.
    TESSERA_TILE Tile() {}
    /// Replaces the values by those of a tile of the same shape and element type.
    template <class X>
    TESSERA_TILE Tile& operator=(const X& values);

private:
    friend struct detail::Access;
    detail::Values<T, Layout::registers> values_;
};

namespace detail {

/// The library's way to the values of a tile.
struct Access {
    template <class T, int R, int C, class L>
    TESSERA_TILE static auto& values(Tile<T, R, C, L>& tile)
    {
        return tile.values_;
    }
    template <class T, int R, int C, class L>
    TESSERA_TILE static const auto& values(const Tile<T, R, C, L>& tile)
    {
        return tile.values_;
    }
};

/// Calls function(0), function(1), ... with numbers that the compiler knows.
template <int Count, class Function>
__device__ __forceinline__ void unrolled(Function&& function)
{
#pragma unroll
    for (int i = 0; i < Count; ++i) {
        function(i);
    }
}

/// Facts of a type that is a tile or becomes one.
template <class X>
struct tile_facts {
    static constexpr bool is_tile = false;
};
template <class T, int R, int C, class L>
struct tile_facts<Tile<T, R, C, L>> {
    static constexpr bool is_tile = true;
    using element = T;
    using layout = L;
    static constexpr int rows = R;
    static constexpr int columns = C;
    // The library uses the result at once. NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter)
    TESSERA_TILE static const Tile<T, R, C, L>& settle(const Tile<T, R, C, L>& tile) { return tile; }
};
template <class X>
using facts_of = tile_facts<std::remove_cvref_t<X>>;

template <class X>
concept TileLike = facts_of<X>::is_tile;
template <class X>
concept Number = std::is_arithmetic_v<X> || MatrixElement<X>;
/// What an operator takes beside a tile. `single` refuses what is no number.
template <class X>
concept Scalar = !TileLike<X>;

/// Returns the tile of something that becomes one: sums that are still being computed are awaited.
template <TileLike X>
TESSERA_TILE decltype(auto) settled(const X& x)
{
    return facts_of<X>::settle(x);
}

/// Returns the same tile in another layout. Threads exchange values through shared memory.
template <class To, class T, int R, int C, class From>
TESSERA_TILE Tile<T, R, C, To> relaid(const Tile<T, R, C, From>& tile);

/// Returns the tile in the layout in which it meets a (R, C) tile of Main.
template <class Main, int R, int C, class X>
TESSERA_TILE auto aligned(const X& tile)
{
    using Facts = facts_of<X>;
    using Wanted = std::conditional_t<
        Facts::rows == R && Facts::columns == C, Main,
        std::conditional_t<Facts::rows == R && Facts::columns == 1, typename Main::Rows, typename Main::Columns>>;
    if constexpr (std::is_same_v<Wanted, typename Facts::layout>) {
        return tile;
    } else {
        return relaid<Wanted>(tile);
    }
}

/// Returns the value that an aligned tile has for value i of a (R, C) tile of Main.
template <class Main, int R, int C, class T, int TileR, int TileC, class L>
TESSERA_TILE const T& met(const Tile<T, TileR, TileC, L>& tile, int i)
{
    if constexpr (TileR == R && TileC == C) {
        return Access::values(tile)[i];
    } else if constexpr (TileR == R && TileC == 1) {
        return Access::values(tile)[Main::row_register(i)];
    } else {
        return Access::values(tile)[Main::column_register(i)];
    }
}

/// The layout of the first operand that has the whole shape.
template <int R, int C, class First, class... Rest>
struct main_layout {
    using type = typename main_layout<R, C, Rest...>::type;
};
template <int R, int C, class First, class... Rest>
    requires(facts_of<First>::rows == R && facts_of<First>::columns == C)
struct main_layout<R, C, First, Rest...> {
    using type = typename facts_of<First>::layout;
};
template <int R, int C, class Last>
    requires(facts_of<Last>::rows != R || facts_of<Last>::columns != C)
struct main_layout<R, C, Last> {
    static_assert(R == 0, "tessera: a column and a row make no tile: broadcast<Rows, Columns>() one of them first");
    using type = typename facts_of<Last>::layout;
};

TESSERA_TILE constexpr int largest_of(std::initializer_list<int> values)
{
    int result = 0;
    for (const int value : values) {
        result = value > result ? value : result;
    }
    return result;
}

template <int R, int C, class Main, class Function, class... Tiles>
TESSERA_TILE auto zip_aligned(Function& function, const Tiles&... tiles)
{
    static_assert(std::is_invocable_v<Function&, const typename facts_of<Tiles>::element&...>,
                  "tessera: the function of map() or zip() takes one element of each tile, in their order");
    using Result = std::remove_cvref_t<decltype(function(std::declval<const typename facts_of<Tiles>::element&>()...))>;
    Tile<Result, R, C, Main> result;
    if constexpr (Main::registers > 0) {
        unrolled<Main::registers>([&](int i) { Access::values(result)[i] = function(met<Main, R, C>(tiles, i)...); });
    }
    return result;
}

/// A scalar as tiles take it: double literals are meant to be float.
template <class X>
TESSERA_TILE constexpr auto single(X scalar)
{
    static_assert(Number<X>, "tessera: a tile computes with tiles and numbers: an input's tile is input.load(at)");
    if constexpr (std::is_same_v<X, double>) {
        return static_cast<float>(scalar);
    } else {
        return scalar;
    }
}

template <class Function, class... Tiles>
TESSERA_TILE auto zip_settled(Function& function, const Tiles&... tiles)
{
    constexpr int rows = largest_of({facts_of<Tiles>::rows...});
    constexpr int columns = largest_of({facts_of<Tiles>::columns...});
    static_assert(((facts_of<Tiles>::rows == rows || facts_of<Tiles>::rows == 1) && ...) &&
                      ((facts_of<Tiles>::columns == columns || facts_of<Tiles>::columns == 1) && ...),
                  "tessera: the shapes of these tiles do not fit each other: rows must be equal or 1, and columns too");
    using Main = typename main_layout<rows, columns, Tiles...>::type;
    return zip_aligned<rows, columns, Main>(function, aligned<Main, rows, columns>(tiles)...);
}

/// Checks that an X can replace a tile.
template <class T, int R, int C, class X>
TESSERA_TILE constexpr auto require_replacement()
{
    static_assert(TileLike<X>,
                  "tessera: a tile is replaced by a tile: full_like(tile, value) is one of a single value");
    if constexpr (TileLike<X>) {
        static_assert(facts_of<X>::rows == R && facts_of<X>::columns == C,
                      "tessera: a tile is replaced by one of its shape: give another shape a new name");
        static_assert(std::is_same_v<typename facts_of<X>::element, T>,
                      "tessera: a tile is replaced by one of its element type: convert<>() it, or give it a new name");
    }
}

}  // namespace detail

/// Replaces the tile.
template <class T, int TileRows, int TileColumns, class Layout>
template <class X>
TESSERA_TILE Tile<T, TileRows, TileColumns, Layout>& Tile<T, TileRows, TileColumns, Layout>::operator=(const X& values)
{
    detail::require_replacement<T, TileRows, TileColumns, X>();
    return *this = detail::aligned<Layout, TileRows, TileColumns>(detail::settled(values));
}

/// Returns function(x, y, ...) of the tiles' elements. Vectors meet each row or column of a tile.
/// @param function  called by many threads at once, once per element: it may not have side effects
template <class Function, class... Tiles>
    requires(detail::TileLike<Function> || (detail::TileLike<Tiles> || ...))
TESSERA_TILE auto zip(Function function, const Tiles&... tiles)
{
    static_assert((detail::TileLike<Tiles> && ...),
                  "tessera: zip(function, x, y) takes the function first, then tiles");
    return detail::zip_settled(function, detail::settled(tiles)...);
}

/// Returns function(x) of each element.
template <class X, class Function>
    requires(detail::TileLike<X> || detail::TileLike<Function>)
TESSERA_TILE auto map(const X& tile, Function function)
{
    static_assert(detail::TileLike<X>, "tessera: map(tile, function) takes the tile first");
    return detail::zip_settled(function, detail::settled(tile));
}

/// Returns the tile with elements of type To: rounded to nearest where that is narrower.
template <class To, class X>
TESSERA_TILE auto convert(const X& tile)
{
    static_assert(detail::TileLike<X>, "tessera: convert takes a tile: an input's is input.load(at)");
    static_assert(
        detail::Number<To>,
        "tessera: a tile has elements of f16, bf16, tf32, f8e4m3, f8e5m2 or a type of C++ for numbers, such as "
        "float and int");
    using From = typename detail::facts_of<X>::element;
    return map(tile, [](const From& value) {
        if constexpr (std::is_same_v<From, To>) {
            return value;
        } else if constexpr (std::is_convertible_v<From, To>) {
            return static_cast<To>(value);
        } else {
            return To(static_cast<float>(value));
        }
    });
}

/// Returns `condition ? x : y`, element by element.
template <detail::TileLike Condition, detail::TileLike X, detail::TileLike Y>
TESSERA_TILE auto where(const Condition& condition, const X& x, const Y& y)
{
    static_assert(std::is_same_v<typename detail::facts_of<X>::element, typename detail::facts_of<Y>::element>,
                  "tessera: where chooses between elements of one type: convert<> one of the tiles");
    return zip([](bool chosen, const auto& one, const auto& other) { return chosen ? one : other; }, condition, x, y);
}
/// Returns `condition ? x : y` with one value for all of y.
template <detail::TileLike Condition, detail::TileLike X, detail::Scalar Y>
TESSERA_TILE auto where(const Condition& condition, const X& x, Y y)
{
    using Element = typename detail::facts_of<X>::element;
    const auto other = static_cast<Element>(detail::single(y));
    return zip([other](bool chosen, const Element& one) { return chosen ? one : other; }, condition, x);
}
/// Refuses to compile what is neither of them.
template <class Condition, class X, class Y>
    requires((detail::TileLike<Condition> || detail::TileLike<X> || detail::TileLike<Y>) &&
             !(detail::TileLike<Condition> && detail::TileLike<X>))
TESSERA_TILE auto where(const Condition&, const X&, const Y&)
{
    static_assert(detail::TileLike<Condition>,
                  "tessera: the condition of where is a tile, as comparisons of tiles are: x > 0");
    static_assert(detail::TileLike<X>,
                  "tessera: where takes one value as its last argument: where(condition, x, value), or "
                  "full_like(tile, value) before it");
}

namespace detail {

/// x / y, at most 2 units in the last place off for y up to 2^126: exact division takes four times as many instructions.
/// Source: PTX ISA, "div".
TESSERA_TILE float divided(float x, float y)
{
#ifdef __CUDA_ARCH__
    float result = 0;
    asm("div.full.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
    return result;
#else
    return x / y;
#endif
}
/// x / y of elements.
template <class X, class Y>
TESSERA_TILE auto quotient(const X& x, const Y& y)
{
    if constexpr (std::is_same_v<decltype(x / y), float>) {
        return divided(x, y);
    } else {
        return x / y;
    }
}

}  // namespace detail

// The operators differ in their sign only.
#define TESSERA_DETAIL_TILE_OPERATOR(SIGN)                                                     \
    template <detail::TileLike X, detail::TileLike Y>                                          \
    TESSERA_TILE auto operator SIGN(const X& x, const Y& y)                                    \
    {                                                                                          \
        return zip([](const auto& left, const auto& right) { return left SIGN right; }, x, y); \
    }                                                                                          \
    template <detail::TileLike X, detail::Scalar Y>                                            \
    TESSERA_TILE auto operator SIGN(const X& x, Y scalar)                                      \
    {                                                                                          \
        const auto right = detail::single(scalar);                                             \
        return map(x, [right](const auto& left) { return left SIGN right; });                  \
    }                                                                                          \
    template <detail::Scalar X, detail::TileLike Y>                                            \
    TESSERA_TILE auto operator SIGN(X scalar, const Y& y)                                      \
    {                                                                                          \
        const auto left = detail::single(scalar);                                              \
        return map(y, [left](const auto& right) { return left SIGN right; });                  \
    }

TESSERA_DETAIL_TILE_OPERATOR(+)
TESSERA_DETAIL_TILE_OPERATOR(-)
TESSERA_DETAIL_TILE_OPERATOR(*)
TESSERA_DETAIL_TILE_OPERATOR(<)
TESSERA_DETAIL_TILE_OPERATOR(<=)
TESSERA_DETAIL_TILE_OPERATOR(>)
TESSERA_DETAIL_TILE_OPERATOR(>=)
TESSERA_DETAIL_TILE_OPERATOR(==)
TESSERA_DETAIL_TILE_OPERATOR(!=)
TESSERA_DETAIL_TILE_OPERATOR(&&)
TESSERA_DETAIL_TILE_OPERATOR(||)
#undef TESSERA_DETAIL_TILE_OPERATOR

// Operators that tiles do not have.
#define TESSERA_DETAIL_NO_TILE_OPERATOR(SIGN)                                                                    \
    template <class X, class Y>                                                                                  \
        requires(detail::TileLike<X> || detail::TileLike<Y>)                                                     \
    TESSERA_TILE auto operator SIGN(const X&, const Y&)                                                          \
    {                                                                                                            \
        static_assert(tessera::detail::always_false<X>, "tessera: tiles have no operator " #SIGN                 \
                                                        ": conditions are combined by && and ||, and map() and " \
                                                        "zip() have all others");                                \
    }                                                                                                            \
    static_assert(true)

TESSERA_DETAIL_NO_TILE_OPERATOR(%);
TESSERA_DETAIL_NO_TILE_OPERATOR(&);
TESSERA_DETAIL_NO_TILE_OPERATOR(|);
TESSERA_DETAIL_NO_TILE_OPERATOR(^);
#undef TESSERA_DETAIL_NO_TILE_OPERATOR

// The same with `x = x + y`.
#define TESSERA_DETAIL_NO_TILE_ASSIGNMENT(SIGN)                                               \
    template <detail::TileLike X, class Y>                                                    \
    TESSERA_TILE auto operator SIGN##=(X&, const Y&)                                          \
    {                                                                                         \
        static_assert(tessera::detail::always_false<X>,                                       \
                      "tessera: tiles have no operator " #SIGN "=: write x = x " #SIGN " y"); \
    }                                                                                         \
    static_assert(true)

TESSERA_DETAIL_NO_TILE_ASSIGNMENT(+);
TESSERA_DETAIL_NO_TILE_ASSIGNMENT(-);
TESSERA_DETAIL_NO_TILE_ASSIGNMENT(*);
TESSERA_DETAIL_NO_TILE_ASSIGNMENT(/);
#undef TESSERA_DETAIL_NO_TILE_ASSIGNMENT

/// Returns the quotients, at most 2 units in the last place off in float. A vector divides by its reciprocals, which must be finite.
template <detail::TileLike X, detail::TileLike Y>
TESSERA_TILE auto operator/(const X& x, const Y& y)
{
    using FactsX = detail::facts_of<X>;
    using FactsY = detail::facts_of<Y>;
    if constexpr (std::is_same_v<typename FactsY::element, float> &&
                  FactsX::rows * FactsX::columns > FactsY::rows * FactsY::columns) {
        return x * (1.0F / y);
    } else {
        return zip([](const auto& left, const auto& right) { return detail::quotient(left, right); }, x, y);
    }
}
/// Returns the quotients, at most 2 units in the last place off in float.
template <detail::TileLike X, detail::Scalar Y>
TESSERA_TILE auto operator/(const X& x, Y scalar)
{
    const auto right = detail::single(scalar);
    return map(x, [right](const auto& left) { return detail::quotient(left, right); });
}
/// Returns the quotients, at most 2 units in the last place off in float.
template <detail::Scalar X, detail::TileLike Y>
TESSERA_TILE auto operator/(X scalar, const Y& y)
{
    const auto left = detail::single(scalar);
    return map(y, [left](const auto& right) { return detail::quotient(left, right); });
}

/// Returns the negative of each element.
template <detail::TileLike X>
TESSERA_TILE auto operator-(const X& x)
{
    return map(x, [](const auto& value) { return -value; });
}

}  // namespace tessera::tile
