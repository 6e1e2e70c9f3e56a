#pragma once

/// @file
/// @ingroup tile_values
/// @brief Which values of a tile a thread has. Programs do not name layouts: tiles carry them in their types.
///
/// A layout has `registers` values per thread. `row(i)` and `column(i)` say where value i of the calling thread is, `exists(i)`
/// whether it is one of the tile, and `owns(i)` whether this thread is the one that stores it: several may have the same value.
/// `Rows` and `Columns` are the layouts of a column and a row vector that go with it: a tile's value i meets value
/// `row_register(i)` and `column_register(i)` of theirs.

#include "tessera/detail/language.hpp"

#include <cstdint>
#include <type_traits>

#include "tessera/detail/host_device.hpp"

namespace tessera::tile::detail {

__device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x % 32); }
__device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x / 32); }

TESSERA_DETAIL_HOST_DEVICE constexpr int largest(int x, int y) { return x > y ? x : y; }
TESSERA_DETAIL_HOST_DEVICE constexpr bool is_power_of_two(int x) { return x > 0 && (x & (x - 1)) == 0; }

/// How the warps of a CTA divide the sums of a product: `WarpsM` along the rows, `WarpsN` along the columns.
template <int WarpsM, int WarpsN>
struct WarpGrid {
    static constexpr int threads = 32 * WarpsM * WarpsN;
    /// Warps whose rows are neighbours: those of a warpgroup.
    static constexpr int inner = WarpsM < 4 ? WarpsM : 4;

    __device__ static int m() { return warp() % WarpsM; }
    __device__ static int n() { return warp() / WarpsM; }
    /// The first row of a warp's fragment `i` of `Count`.
    template <int Count>
    __device__ static int first_row(int i)
    {
        return m() / inner * (16 * inner * Count) + i * 16 * inner + m() % inner * 16;
    }
};

template <int TileRows, int WarpsM, int WarpsN>
struct FragmentRows;
template <int TileColumns, int WarpsM, int WarpsN>
struct FragmentColumns;

/// The sums of a product: fragments of (16, 8) values, as mma.sync and wgmma have them in registers.
template <int TileRows, int TileColumns, int WarpsM, int WarpsN>
struct Fragments {
    using Grid = WarpGrid<WarpsM, WarpsN>;
    using Rows = FragmentRows<TileRows, WarpsM, WarpsN>;
    using Columns = FragmentColumns<TileColumns, WarpsM, WarpsN>;
    static_assert(
        TileRows % (16 * WarpsM) == 0,
        "tessera: the rows of a tile of sums must be a multiple of 16 for each warp along them; the program's hints "
        "(warpgroups, warps_m) say how many there are");
    static_assert(TileColumns % (8 * WarpsN) == 0,
                  "tessera: the columns of a tile of sums must be a multiple of 8 for each warp along them (warps_n)");
    static constexpr int threads = Grid::threads;
    static constexpr int along_m = TileRows / (16 * WarpsM);
    static constexpr int along_n = TileColumns / (8 * WarpsN);
    static constexpr int registers = 4 * along_m * along_n;

    __device__ static int row(int i)
    {
        return Grid::template first_row<along_m>(i / (4 * along_n)) + lane() / 4 + 8 * (i % 4 / 2);
    }
    __device__ static int column(int i)
    {
        return Grid::n() * 8 * along_n + i / 4 % along_n * 8 + 2 * (lane() % 4) + i % 2;
    }
    __device__ static bool exists(int) { return true; }
    __device__ static bool owns(int) { return true; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int row_register(int i) { return i / (4 * along_n) * 2 + i % 4 / 2; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int column_register(int i) { return i / 4 % along_n * 2 + i % 2; }
};

template <class Layout>
inline constexpr bool is_fragments = false;
template <int R, int C, int WarpsM, int WarpsN>
inline constexpr bool is_fragments<Fragments<R, C, WarpsM, WarpsN>> = true;

/// A column vector beside Fragments: four lanes have the same value.
template <int TileRows, int WarpsM, int WarpsN>
struct FragmentRows {
    using Grid = WarpGrid<WarpsM, WarpsN>;
    using Rows = FragmentRows;
    using Columns = FragmentRows;
    static constexpr int threads = Grid::threads;
    static constexpr int along_m = TileRows / (16 * WarpsM);
    static constexpr int registers = 2 * along_m;

    __device__ static int row(int i) { return Grid::template first_row<along_m>(i / 2) + lane() / 4 + 8 * (i % 2); }
    __device__ static int column(int) { return 0; }
    __device__ static bool exists(int) { return true; }
    __device__ static bool owns(int) { return lane() % 4 == 0 && Grid::n() == 0; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int row_register(int i) { return i; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int column_register(int) { return 0; }
};

/// A row vector beside Fragments: eight lanes have the same value.
template <int TileColumns, int WarpsM, int WarpsN>
struct FragmentColumns {
    using Grid = WarpGrid<WarpsM, WarpsN>;
    using Rows = FragmentColumns;
    using Columns = FragmentColumns;
    static constexpr int threads = Grid::threads;
    static constexpr int along_n = TileColumns / (8 * WarpsN);
    static constexpr int registers = 2 * along_n;

    __device__ static int row(int) { return 0; }
    __device__ static int column(int i) { return Grid::n() * 8 * along_n + i / 2 * 8 + 2 * (lane() % 4) + i % 2; }
    __device__ static bool exists(int) { return true; }
    __device__ static bool owns(int) { return lane() / 4 == 0 && Grid::m() == 0; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int row_register(int) { return 0; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int column_register(int i) { return i; }
};

/// The values that a thread loads and stores at once: up to eight neighbours of a row.
constexpr int striped_vector(int rows, int columns, int threads)
{
    int vector = 8;
    while (vector > 1 && (columns % vector != 0 || rows * columns / vector < threads)) {
        vector /= 2;
    }
    return vector;
}

template <int TileRows, int TileColumns, int Threads>
struct StripedRows;
template <int TileRows, int TileColumns, int Threads>
struct StripedColumns;

/// What is loaded from and stored to memory: neighbouring threads have neighbouring vectors of a row.
template <int TileRows, int TileColumns, int Threads>
struct Striped {
    using Rows = StripedRows<TileRows, TileColumns, Threads>;
    using Columns = StripedColumns<TileRows, TileColumns, Threads>;
    static constexpr int threads = Threads;
    static constexpr int vector = striped_vector(TileRows, TileColumns, Threads);
    static constexpr int in_row = TileColumns / vector;                   // vectors
    static constexpr int vectors = TileRows * in_row;                     // of the tile
    static constexpr int per_thread = (vectors + Threads - 1) / Threads;  // vectors
    static constexpr int registers = per_thread * vector;
    static constexpr bool is_full = vectors % Threads == 0;
    /// Vectors of a thread that are in one row.
    static constexpr int same_row = TileRows == 1 ? per_thread : in_row % Threads == 0 ? in_row / Threads : 1;

    __device__ static int vector_index(int i) { return i / vector * Threads + static_cast<int>(threadIdx.x); }
    __device__ static int row(int i) { return vector_index(i) / in_row; }
    __device__ static int column(int i) { return vector_index(i) % in_row * vector + i % vector; }
    __device__ static bool exists(int i) { return is_full || vector_index(i) < vectors; }
    __device__ static bool owns(int i) { return exists(i); }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int row_register(int i) { return i / vector / same_row; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int column_register(int i) { return i % Columns::registers; }
};

/// A column vector beside Striped: all threads with values of a row have its value.
template <int TileRows, int TileColumns, int Threads>
struct StripedRows {
    using Tile = Striped<TileRows, TileColumns, Threads>;
    using Rows = StripedRows;
    using Columns = StripedRows;
    static constexpr int threads = Threads;
    static constexpr int registers = Tile::per_thread / Tile::same_row;

    __device__ static int of_tile(int i) { return i * Tile::same_row * Tile::vector; }
    __device__ static int row(int i) { return Tile::row(of_tile(i)); }
    __device__ static int column(int) { return 0; }
    __device__ static bool exists(int i) { return Tile::exists(of_tile(i)); }
    __device__ static bool owns(int i) { return exists(i) && Tile::column(of_tile(i)) == 0; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int row_register(int i) { return i; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int column_register(int) { return 0; }
};

/// A row vector beside Striped.
template <int TileRows, int TileColumns, int Threads>
struct StripedColumns {
    using Tile = Striped<TileRows, TileColumns, Threads>;
    using Rows = StripedColumns;
    using Columns = StripedColumns;
    static constexpr int threads = Threads;
    /// If a row has a divisor of the threads, all values of a thread are in the same columns; if it has a multiple, in as many
    /// as a row has for a thread; and otherwise anywhere.
    static constexpr int registers = Threads % Tile::in_row == 0   ? Tile::vector
                                     : Tile::in_row % Threads == 0 ? Tile::same_row * Tile::vector
                                                                   : Tile::registers;

    __device__ static int row(int) { return 0; }
    __device__ static int column(int i) { return Tile::column(i); }
    __device__ static bool exists(int i) { return Tile::exists(i); }
    __device__ static bool owns(int i) { return exists(i) && Tile::row(i) == 0; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int row_register(int) { return 0; }
    TESSERA_DETAIL_HOST_DEVICE static constexpr int column_register(int i) { return i; }
};

/// The tile of a thread that has none of it: one that only loads, or the host, which plans. `Layout` is what the others have.
template <class Layout>
struct Absent {
    using Rows = Absent<typename Layout::Rows>;
    using Columns = Absent<typename Layout::Columns>;
    using Present = Layout;
    static constexpr int threads = Layout::threads;
    static constexpr int registers = 0;
};

template <class Layout>
inline constexpr bool is_absent = false;
template <class Layout>
inline constexpr bool is_absent<Absent<Layout>> = true;

/// The layout of the threads that compute.
template <class Layout>
struct present_layout {
    using type = Layout;
};
template <class Layout>
struct present_layout<Absent<Layout>> {
    using type = Layout;
};
template <class Layout>
using PresentLayout = typename present_layout<Layout>::type;

/// The layout of a whole tile that a vector's is a part of.
template <int Rows, int Columns, class Vector>
struct broadcast_layout {
    using type = Striped<Rows, Columns, Vector::threads>;
};
template <int Rows, int Columns, int WarpsM, int WarpsN>
struct broadcast_layout<Rows, Columns, FragmentRows<Rows, WarpsM, WarpsN>> {
    using type = Fragments<Rows, Columns, WarpsM, WarpsN>;
};
template <int Rows, int Columns, int WarpsM, int WarpsN>
struct broadcast_layout<Rows, Columns, FragmentColumns<Columns, WarpsM, WarpsN>> {
    using type = Fragments<Rows, Columns, WarpsM, WarpsN>;
};
template <int Rows, int Columns, class Vector>
struct broadcast_layout<Rows, Columns, Absent<Vector>> {
    using type = Absent<typename broadcast_layout<Rows, Columns, Vector>::type>;
};

/// Returns the other layout as it is for threads that have, or do not have, a tile of Layout.
template <class Layout, class Other>
using AsPresentAs = std::conditional_t<is_absent<Layout>, Absent<PresentLayout<Other>>, PresentLayout<Other>>;

}  // namespace tessera::tile::detail
