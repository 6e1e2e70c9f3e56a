#pragma once

/// @file
/// @ingroup tile_values
/// @brief How the threads of a CTA exchange values: other layouts, `transpose`, and reductions along rows and columns.
///
/// All exchanges use the first bytes of dynamic shared memory, one after the other.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#include <cuda/std/limits>
#include <type_traits>
#include <utility>

#include "tessera/device/warp.cuh"
#include "tessera/tile/tile.cuh"

namespace tessera::tile {

namespace detail {

/// The most that one exchange takes of shared memory. Larger tiles go in parts.
inline constexpr int exchange_bytes = 16 * 1024;

#ifdef __CUDACC__
extern __shared__ __align__(1024) std::byte tile_shared_memory[];  // NOLINT: dynamic shared memory
#endif

/// Meets the other threads that compute.
template <int Threads>
__device__ __forceinline__ void meet()
{
    NamedBarrier<Threads>(1).synchronize();
}

/// Rows of a tile that one part of an exchange has, of `row_bytes` each: a power of two, or all.
TESSERA_TILE constexpr int exchanged_rows(int rows, int row_bytes)
{
    int part = rows;
    while (part > 1 && part * row_bytes > exchange_bytes) {
        part = (part + 1) / 2;
    }
    return part;
}

/// Elements from one row to the next in shared memory: a little more than a row has, so that a column is not in one bank.
template <class T, int C>
inline constexpr int exchanged_row = C + (C > 1 ? largest(1, 8 / static_cast<int>(sizeof(T))) : 0);
template <class T, int R, int C>
inline constexpr int exchanged_rows_of = exchanged_rows(R, exchanged_row<T, C>* static_cast<int>(sizeof(T)));

/// Passes a tile through shared memory, part by part.
template <bool Transposed, class T, int R, int C, class From, int ToR, int ToC, class To>
__device__ __forceinline__ void exchange_values(const Tile<T, R, C, From>& tile, Tile<T, ToR, ToC, To>& result)
{
    constexpr int row_elements = exchanged_row<T, C>;
    constexpr int part_rows = exchanged_rows_of<T, R, C>;
    constexpr int parts = (R + part_rows - 1) / part_rows;
    T* const shared = reinterpret_cast<T*>(tile_shared_memory);
    if constexpr (parts > 1) {
        // A part sets some registers. Were the others not set before the loop, ptxas 13.0 would set all in each part: the values of
        // earlier parts were lost on an H200.
#pragma unroll
        for (int i = 0; i < To::registers; ++i) {
            Access::values(result)[i] = T{};
        }
    }
#pragma unroll 1
    for (int part = 0; part < parts; ++part) {
        const int first = part * part_rows;
        meet<From::threads>();
#pragma unroll
        for (int i = 0; i < From::registers; ++i) {
            const int row = From::row(i) - first;
            if (From::owns(i) && (parts == 1 || (row >= 0 && row < part_rows))) {
                shared[row * row_elements + From::column(i)] = Access::values(tile)[i];
            }
        }
        meet<From::threads>();
#pragma unroll
        for (int i = 0; i < To::registers; ++i) {
            // A single row or column may be read as each of a vector.
            const int row = R == 1 ? 0 : (Transposed ? To::column(i) : To::row(i)) - first;
            const int column = C == 1 ? 0 : Transposed ? To::row(i) : To::column(i);
            if (To::exists(i) && (parts == 1 || (row >= 0 && row < part_rows))) {
                Access::values(result)[i] = shared[row * row_elements + column];
            }
        }
    }
}

/// Exchanges a tile through shared memory.
/// @tparam Transposed  the result has rows and columns exchanged
template <class To, bool Transposed, class T, int R, int C, class From>
TESSERA_TILE auto exchanged(const Tile<T, R, C, From>& tile)
{
    need_scratch<From, static_cast<std::size_t>(exchanged_rows_of<T, R, C>) * exchanged_row<T, C> * sizeof(T)>();
    Tile<T, Transposed ? C : R, Transposed ? R : C, To> result;
    if constexpr (From::registers > 0) {
        exchange_values<Transposed>(tile, result);
    }
    return result;
}

template <class To, class T, int R, int C, class From>
TESSERA_TILE Tile<T, R, C, To> relaid(const Tile<T, R, C, From>& tile)
{
    return exchanged<To, false>(tile);
}

/// The layout of a transposed tile.
template <int R, int C, class Layout>
struct transposed_layout {
    using type = AsPresentAs<Layout, Striped<C, R, Layout::threads>>;
};
template <int R, int C, int WarpsM, int WarpsN>
    requires(C % (16 * WarpsM) == 0 && R % (8 * WarpsN) == 0)
struct transposed_layout<R, C, Fragments<R, C, WarpsM, WarpsN>> {
    using type = Fragments<C, R, WarpsM, WarpsN>;
};
template <int R, int C, int WarpsM, int WarpsN>
    requires(C % (16 * WarpsM) == 0 && R % (8 * WarpsN) == 0)
struct transposed_layout<R, C, Absent<Fragments<R, C, WarpsM, WarpsN>>> {
    using type = Absent<Fragments<C, R, WarpsM, WarpsN>>;
};

/// Combines a value with those of lanes whose numbers differ in the bits from First to Last / 2.
template <int First, int Last, class T, class Combine>
__device__ __forceinline__ T combined_in_warp(T value, Combine& combine)
{
#pragma unroll
    for (int distance = First; distance < Last; distance *= 2) {
        value = combine(value, __shfl_xor_sync(~0U, value, distance));
    }
    return value;
}

/// How values of a row or column meet: first in a thread, then between lanes at these distances, then between warps.
template <class Layout>
struct Reduction;

template <int R, int C, int WarpsM, int WarpsN>
struct Reduction<Fragments<R, C, WarpsM, WarpsN>> {
    static constexpr int row_lanes_first = 1;
    static constexpr int row_lanes_last = 4;
    static constexpr int row_warps = WarpsN;  // that have values of one row
    static constexpr int column_lanes_first = 4;
    static constexpr int column_lanes_last = 32;
    static constexpr int column_warps = WarpsM;
    __device__ static int row_warp() { return WarpGrid<WarpsM, WarpsN>::n(); }
    __device__ static int column_warp() { return WarpGrid<WarpsM, WarpsN>::m(); }
};

template <int R, int C, int Threads>
struct Reduction<Striped<R, C, Threads>> {
    using Layout = Striped<R, C, Threads>;
    static constexpr int row_threads = Layout::in_row < Threads ? Layout::in_row : Threads;  // that have one row
    static_assert(R == 1 || is_power_of_two(Layout::in_row) || Layout::in_row % Threads == 0,
                  "tessera: rows and columns are combined in tiles of one row, or of a power of two of columns: wider "
                  "tiles, and load(at, value) for what is outside of the matrix");
    static_assert(
        R == 1 || Threads % row_threads == 0,
        "tessera: rows and columns are combined by a power of two of warps: hints with other warps_m, warps_n "
        "or warpgroups");
    static constexpr int row_lanes_first = 1;
    static constexpr int row_lanes_last = R == 1 || row_threads > 32 ? 32 : row_threads;
    static constexpr int row_warps = R == 1 ? Threads / 32 : row_threads > 32 ? row_threads / 32 : 1;
    __device__ static int row_warp() { return warp() % row_warps; }
    // Threads that have values of one column: those whose numbers differ by a multiple of a row's.
    static constexpr int column_lanes_first = row_threads < 32 ? row_threads : 32;
    static constexpr int column_lanes_last = 32;
    static constexpr int column_warps = Threads / (row_threads > 32 ? row_threads : 32);
    __device__ static int column_warp() { return warp() / (row_threads > 32 ? row_threads / 32 : 1); }
};

/// True for the layouts of whole tiles. A vector that was combined itself has another.
template <class Layout>
inline constexpr bool is_combinable = false;
template <int R, int C, int WarpsM, int WarpsN>
inline constexpr bool is_combinable<Fragments<R, C, WarpsM, WarpsN>> = true;
template <int R, int C, int Threads>
inline constexpr bool is_combinable<Striped<R, C, Threads>> = true;

/// Returns a tile in a layout whose rows and columns can be combined.
template <class T, int R, int C, class Layout>
TESSERA_TILE decltype(auto) combinable(const Tile<T, R, C, Layout>& tile)
{
    if constexpr (is_combinable<PresentLayout<Layout>>) {
        return (tile);
    } else {
        return relaid<AsPresentAs<Layout, Striped<R, C, Layout::threads>>>(tile);
    }
}
template <class X>
using Combinable = decltype(combinable(settled(std::declval<const X&>())));

/// Combines what `Warps` warps have for the same rows or columns. All get the same bits.
template <int Warps, class Layout, int R, int C, class T, class Combine>
__device__ __forceinline__ void combine_warps(Tile<T, R, C, Layout>& tile, int warp_in_row, bool tells,
                                              Combine& combine)
{
    constexpr int extent = R > C ? R : C;
    // A thread without a value of the tile has the identity. It may be the only one of its warp that knows of a column.
    constexpr bool all_tell = C > 1 || extent == 1;
    T* const shared = reinterpret_cast<T*>(tile_shared_memory);
    meet<Layout::threads>();
#pragma unroll
    for (int i = 0; i < Layout::registers; ++i) {
        if (tells && (all_tell || Layout::exists(i))) {
            const int place = extent == 1 ? 0 : C == 1 ? Layout::row(i) : Layout::column(i);
            shared[warp_in_row * extent + place] = Access::values(tile)[i];
        }
    }
    meet<Layout::threads>();
#pragma unroll
    for (int i = 0; i < Layout::registers; ++i) {
        if (all_tell || Layout::exists(i)) {
            const int place = extent == 1 ? 0 : C == 1 ? Layout::row(i) : Layout::column(i);
            T value = shared[place];
#pragma unroll
            for (int other = 1; other < Warps; ++other) {
                value = combine(value, shared[other * extent + place]);
            }
            Access::values(tile)[i] = value;
        }
    }
}

}  // namespace detail

/// Returns the tile with rows and columns exchanged.
template <detail::TileLike X>
TESSERA_TILE auto transpose(const X& x)
{
    using Facts = detail::facts_of<X>;
    using To = typename detail::transposed_layout<Facts::rows, Facts::columns, typename Facts::layout>::type;
    return detail::exchanged<To, true>(detail::settled(x));
}

namespace detail {

template <class Element, class Combine>
TESSERA_TILE constexpr auto require_combine()
{
    static_assert(std::is_invocable_v<Combine&, const Element&, const Element&>,
                  "tessera: what combines the elements of rows or columns takes two of them");
    static_assert(std::is_convertible_v<std::invoke_result_t<Combine&, const Element&, const Element&>, Element>,
                  "tessera: elements that are combined give another of their type: convert<float>() narrow ones first");
}

}  // namespace detail

/// Returns (Rows, 1): the values of each row, combined in a fixed order.
/// @param combine   an associative and commutative function of two elements
/// @param identity  what changes nothing: 0 for a sum
template <detail::TileLike X, class Combine>
TESSERA_TILE auto reduce_rows(const X& x, Combine combine, typename detail::facts_of<X>::element identity)
{
    using Facts = detail::facts_of<detail::Combinable<X>>;
    using Layout = typename Facts::layout;
    using Element = typename Facts::element;
    using Rows = typename Layout::Rows;
    detail::require_combine<Element, Combine>();
    using How = detail::Reduction<detail::PresentLayout<Layout>>;
    Tile<Element, Facts::rows, 1, Rows> result;
    if constexpr (How::row_warps > 1) {
        detail::need_scratch<Layout, static_cast<std::size_t>(How::row_warps) * Facts::rows * sizeof(Element)>();
    }
    const auto& values = detail::settled(x);
    const auto& tile = detail::combinable(values);
    if constexpr (Layout::registers > 0) {
        detail::unrolled<Rows::registers>([&](int i) { detail::Access::values(result)[i] = identity; });
        detail::unrolled<Layout::registers>([&](int i) {
            Element& sum = detail::Access::values(result)[Layout::row_register(i)];
            const Element combined = combine(sum, detail::Access::values(tile)[i]);
            sum = Layout::exists(i) ? combined : sum;
        });
        detail::unrolled<Rows::registers>([&](int i) {
            Element& sum = detail::Access::values(result)[i];
            sum = detail::combined_in_warp<How::row_lanes_first, How::row_lanes_last>(sum, combine);
        });
        if constexpr (How::row_warps > 1) {
            const bool tells = threadIdx.x % How::row_lanes_last == 0;
            detail::combine_warps<How::row_warps>(result, How::row_warp(), tells, combine);
        }
    }
    return result;
}

/// Returns (1, Columns): the values of each column, combined in a fixed order. See `reduce_rows`.
template <detail::TileLike X, class Combine>
TESSERA_TILE auto reduce_columns(const X& x, Combine combine, typename detail::facts_of<X>::element identity)
{
    using Facts = detail::facts_of<detail::Combinable<X>>;
    using Layout = typename Facts::layout;
    using Element = typename Facts::element;
    using Columns = typename Layout::Columns;
    detail::require_combine<Element, Combine>();
    using How = detail::Reduction<detail::PresentLayout<Layout>>;
    static_assert(Facts::rows > 1, "tessera: a tile with one row has nothing to reduce along its columns");
    Tile<Element, 1, Facts::columns, Columns> result;
    if constexpr (How::column_warps > 1) {
        detail::need_scratch<Layout, static_cast<std::size_t>(How::column_warps) * Facts::columns * sizeof(Element)>();
    }
    const auto& values = detail::settled(x);
    const auto& tile = detail::combinable(values);
    if constexpr (Layout::registers > 0) {
        detail::unrolled<Columns::registers>([&](int i) { detail::Access::values(result)[i] = identity; });
        detail::unrolled<Layout::registers>([&](int i) {
            Element& sum = detail::Access::values(result)[Layout::column_register(i)];
            const Element combined = combine(sum, detail::Access::values(tile)[i]);
            sum = Layout::exists(i) ? combined : sum;
        });
        detail::unrolled<Columns::registers>([&](int i) {
            Element& sum = detail::Access::values(result)[i];
            sum = detail::combined_in_warp<How::column_lanes_first, How::column_lanes_last>(sum, combine);
        });
        if constexpr (How::column_warps > 1) {
            const bool tells = threadIdx.x % 32 < How::column_lanes_first;
            detail::combine_warps<How::column_warps>(result, How::column_warp(), tells, combine);
        }
    }
    return result;
}

/// Returns (Rows, 1): the sum of each row.
template <detail::TileLike X>
TESSERA_TILE auto row_sums(const X& x)
{
    using Element = typename detail::facts_of<X>::element;
    return reduce_rows(x, [](Element one, Element other) { return one + other; }, Element(0));
}
/// Returns (1, Columns): the sum of each column.
template <detail::TileLike X>
TESSERA_TILE auto column_sums(const X& x)
{
    using Element = typename detail::facts_of<X>::element;
    return reduce_columns(x, [](Element one, Element other) { return one + other; }, Element(0));
}
/// Returns (Rows, 1): the largest value of each row.
template <detail::TileLike X>
TESSERA_TILE auto row_maxima(const X& x)
{
    static_assert(std::is_same_v<typename detail::facts_of<X>::element, float>,
                  "tessera: row_maxima compares float: convert<float>() the tile");
    return reduce_rows(
        x, [](float one, float other) { return fmaxf(one, other); }, -cuda::std::numeric_limits<float>::infinity());
}
/// Returns (1, Columns): the largest value of each column.
template <detail::TileLike X>
TESSERA_TILE auto column_maxima(const X& x)
{
    static_assert(std::is_same_v<typename detail::facts_of<X>::element, float>,
                  "tessera: column_maxima compares float: convert<float>() the tile");
    return reduce_columns(
        x, [](float one, float other) { return fmaxf(one, other); }, -cuda::std::numeric_limits<float>::infinity());
}

}  // namespace tessera::tile
