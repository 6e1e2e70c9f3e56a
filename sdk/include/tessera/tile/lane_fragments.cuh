#pragma once

/// @file
/// @ingroup tile_values
/// @brief The layout of sums that come from tensor memory. Private to tessera/tile.
///
/// A row of sums is a lane of tensor memory, and a warp reaches the 32 lanes of its position in its warpgroup. It reads them in
/// fragments of (16, 8) values, the same as those of the other machines: what differs is which rows a warp has.

#include "tessera/detail/language.hpp"

#include <type_traits>

#include "tessera/tile/cta.cuh"
#include "tessera/tile/exchange.cuh"
#include "tessera/tile/layout.cuh"

namespace tessera::tile::detail {

/// True for the rows that one instruction of tcgen05 has, or a multiple: blocks of 128 lanes. 64 rows are in the first 16 of each
/// 32 lanes.
TESSERA_DETAIL_HOST_DEVICE constexpr bool has_lanes(int rows) { return rows == 64 || rows % 128 == 0; }

template <int TileRows, int WarpsN>
struct LaneFragmentRows;
template <int TileColumns, int WarpsN>
struct LaneFragmentColumns;

/// Sums of a product that was added up in tensor memory: `WarpsN` warpgroups have the same rows, and divide the columns.
template <int TileRows, int TileColumns, int WarpsN>
struct LaneFragments {
    using Grid = WarpGrid<4, WarpsN>;
    using Rows = LaneFragmentRows<TileRows, WarpsN>;
    using Columns = LaneFragmentColumns<TileColumns, WarpsN>;
    static_assert(has_lanes(TileRows) && TileColumns % (8 * WarpsN) == 0);
    static constexpr int threads = Grid::threads;
    static constexpr int along_m = TileRows / 64;  // fragments of a warp
    static constexpr int along_n = TileColumns / (8 * WarpsN);
    static constexpr int registers = 4 * along_m * along_n;

    __device__ static int row(int i) { return Rows::row(row_register(i)); }
    __device__ static int column(int i)
    {
        return Grid::n() * 8 * along_n + i / 4 % along_n * 8 + 2 * (lane() % 4) + i % 2;
    }
    __device__ static bool exists(int) { return true; }
    __device__ static bool owns(int) { return true; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int row_register(int i) { return i / (4 * along_n) * 2 + i % 4 / 2; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int column_register(int i) { return i / 4 % along_n * 2 + i % 2; }
};

/// A column vector beside LaneFragments.
template <int TileRows, int WarpsN>
struct LaneFragmentRows {
    using Grid = WarpGrid<4, WarpsN>;
    using Rows = LaneFragmentRows;
    using Columns = LaneFragmentRows;
    static constexpr int threads = Grid::threads;
    static constexpr int registers = TileRows / 32;

    __device__ static int row(int i)
    {
        const int fragment = i / 2;
        const int first = TileRows == 64 ? Grid::m() * 16 : fragment / 2 * 128 + Grid::m() * 32 + fragment % 2 * 16;
        return first + lane() / 4 + 8 * (i % 2);
    }
    __device__ static int column(int) { return 0; }
    __device__ static bool exists(int) { return true; }
    __device__ static bool owns(int) { return lane() % 4 == 0 && Grid::n() == 0; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int row_register(int i) { return i; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int column_register(int) { return 0; }
};

/// A row vector beside LaneFragments.
template <int TileColumns, int WarpsN>
struct LaneFragmentColumns : FragmentColumns<TileColumns, 4, WarpsN> {
    using Rows = LaneFragmentColumns;
    using Columns = LaneFragmentColumns;
};

template <int R, int C, int WarpsN>
inline constexpr bool is_fragments<LaneFragments<R, C, WarpsN>> = true;
template <int R, int C, int WarpsN>
inline constexpr bool is_combinable<LaneFragments<R, C, WarpsN>> = true;

template <int R, int C, int WarpsN>
struct Reduction<LaneFragments<R, C, WarpsN>> : Reduction<Fragments<R, C, 4, WarpsN>> {};

template <int Rows, int Columns, int WarpsN>
struct broadcast_layout<Rows, Columns, LaneFragmentRows<Rows, WarpsN>> {
    using type = LaneFragments<Rows, Columns, WarpsN>;
};
template <int Rows, int Columns, int WarpsN>
struct broadcast_layout<Rows, Columns, LaneFragmentColumns<Columns, WarpsN>> {
    using type = LaneFragments<Rows, Columns, WarpsN>;
};

/// The layout of a tile that a program makes where sums are in tensor memory.
template <class Machine, int Rows, int Columns>
struct lane_layout {
    static constexpr bool rows_fit = has_lanes(Rows);
    static constexpr bool columns_fit = Columns % (8 * Machine::warps_n) == 0;
    static constexpr bool is_tile = rows_fit && columns_fit;
    using Tile = std::conditional_t<
        is_tile, LaneFragments<is_tile ? Rows : 64, is_tile ? Columns : 8 * Machine::warps_n, Machine::warps_n>,
        Striped<Rows, Columns, Machine::threads>>;
    using Vector = std::conditional_t<
        Columns == 1 && rows_fit, LaneFragmentRows<Rows, Machine::warps_n>,
        std::conditional_t<Rows == 1 && columns_fit,
                           LaneFragmentColumns<columns_fit ? Columns : 8 * Machine::warps_n, Machine::warps_n>, Tile>>;
    using type = typename Layouts<Machine>::template Of<Vector>;
};

template <class Machine, int Rows, int Columns>
    requires(Machine::instructions == Instructions::tcgen05)
struct register_layout<Machine, Rows, Columns> : lane_layout<Machine, Rows, Columns> {};

}  // namespace tessera::tile::detail
