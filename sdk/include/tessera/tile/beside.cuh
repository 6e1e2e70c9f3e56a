#pragma once

/// @file
/// @ingroup tile_gemm
/// @brief Operands that are read where sums are, element by element, and never become tiles. Private to tessera/tile.
///
/// A tile that is loaded has a layout of its own, and meets sums through shared memory. Next to sums that fill the registers, that spills.

#include "tessera/detail/language.hpp"

#include <type_traits>

#include "tessera/tile/lane_fragments.cuh"
#include "tessera/tile/memory.cuh"
#include "tessera/tile/view.cuh"

namespace tessera::tile::detail {

/// True for layouts in which values 2 * i and 2 * i + 1 of a thread are neighbours in a row.
template <class Layout>
inline constexpr bool has_pairs = is_fragments<Layout>;
template <int R, int C, int WarpsN>
inline constexpr bool has_pairs<LaneFragments<R, C, WarpsN>> = true;

/// What a matrix has where a thread has its values of another tile. A single row or column has the same for all rows or columns.
/// Outside of the matrix it is what the last row or column has: nobody stores what comes of it.
template <class Layout, Edges At, int R, int C, class T, class Order>
class Beside {
public:
    __device__ Beside(const Memory<const T, Order>& memory, const Spot& spot)
        : window_(memory, spot),
          pairs_(row_major && C > 1 && memory.in_vectors && memory.columns % 2 == 0)
    {}

    /// Returns true if `pair<true>` may be called.
    __device__ bool has_pairs_in_memory() const { return pairs_ || C == 1; }
    __device__ T value(int i) const { return *window_.at(row(i), column(i, 1)); }
    /// Returns values i and i + 1.
    template <bool InMemory>
    __device__ Neighbours<T, 2> pair(int i) const
    {
        if constexpr (C == 1) {
            const T both = value(i);
            return {{both, both}};
        } else if constexpr (InMemory) {
            return Neighbours<T, 2>::load(window_.at(row(i), column(i, 2)));
        } else {
            return {{value(i), value(i + 1)}};
        }
    }

private:
    static constexpr bool row_major = Memory<const T, Order>::row_major;

    __device__ int row(int i) const
    {
        return R == 1 ? 0 : At.rows == Edge::ragged ? ::min(Layout::row(i), window_.rows - 1) : Layout::row(i);
    }
    /// The column of value i, or the last one from which `count` are inside.
    __device__ int column(int i, int count) const
    {
        return C == 1 ? 0 : At.columns == Edge::ragged ? ::min(Layout::column(i), window_.columns - count) : Layout::column(i);
    }

    Window<At, R, C, const T, Order> window_;
    bool pairs_;
};

/// Returns what an input has beside the values of a tile in Layout at a place. For the threads that compute.
template <class Layout, Edges At, class T, int R, int C, class Order, class E>
__device__ auto beside(const Input<T, R, C, Order, E>& input, const Spot& spot)
{
    return Beside<Layout, At, R, C, T, Order>(input.memory(), spot);
}

}  // namespace tessera::tile::detail
