#pragma once

/// @file
/// @ingroup tile_views
/// @brief What inputs and outputs are made of. It looks alike for every element type, tile and order, so that a host that
/// does not know a program's types can make its arguments. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tessera/detail/host_device.hpp"
#include "tessera/device/tile_raster.hpp"
#include "tessera/storage_order.hpp"
#include "tessera/tensor_map.hpp"

namespace tessera::tile::detail {

/// Matrices of one shape in global memory.
template <class T, class Order>
struct Memory {
    static constexpr bool row_major = std::is_same_v<Order, RowMajor>;

    T* data = nullptr;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t leading_dimension = 0;
    std::int64_t batches = 1;
    std::int64_t batch_stride = 0;  // elements
    int device = -1;
    bool in_vectors = false;  // lines begin at multiples of 16 bytes

    /// The number of the matrix for a place in batch `batch`: a single matrix is that of all.
    TESSERA_DETAIL_HOST_DEVICE std::int64_t batch_of(std::uint32_t batch) const { return batches == 1 ? 0 : batch; }
    TESSERA_DETAIL_HOST_DEVICE T* at(std::int64_t batch, std::int64_t row, std::int64_t column) const
    {
        return data + batch * batch_stride +
               (row_major ? row * leading_dimension + column : column * leading_dimension + row);
    }
};

}  // namespace tessera::tile::detail

namespace tessera::tile {

/// An extent that only the matrix tells.
inline constexpr std::int64_t any_extent = -1;

/// The extents of a matrix, as far as a program is compiled for them: loops have a known length then, and tiles are compared with the
/// matrix once, or not at all.
/// @tparam Rows     of the matrix, or `any_extent`
/// @tparam Columns  of the matrix, or `any_extent`
template <std::int64_t Rows = any_extent, std::int64_t Columns = any_extent>
struct Extents {
    static_assert((Rows > 0 || Rows == any_extent) && (Columns > 0 || Columns == any_extent),
                  "tessera: extents that a program is compiled for are 1 or more, or any_extent");
    static constexpr std::int64_t rows = Rows;        ///< of the matrix
    static constexpr std::int64_t columns = Columns;  ///< of the matrix
};

}  // namespace tessera::tile

namespace tessera::tile::detail {

template <class X>
inline constexpr bool is_extents = false;
template <std::int64_t Rows, std::int64_t Columns>
inline constexpr bool is_extents<Extents<Rows, Columns>> = true;

/// Returns a matrix whose extents the compiler knows, as far as `E` has them.
template <class E, class T, class Order>
TESSERA_DETAIL_HOST_DEVICE Memory<T, Order> with_extents(Memory<T, Order> memory)
{
    memory.rows = E::rows != any_extent ? E::rows : memory.rows;
    memory.columns = E::columns != any_extent ? E::columns : memory.columns;
    return memory;
}

/// How much of a tile can be outside of its matrix, along one side.
enum class Edge : std::uint8_t {
    ragged,  // any part
    whole,   // all or nothing: the program is compiled for extents that are multiples of the tile's
    none     // nothing: the launch has checked it
};
/// The same along both.
struct Edges {
    Edge rows = Edge::ragged;
    Edge columns = Edge::ragged;
};

/// @param is_grouped  the place may be outside: a group of places has one that the output does not have
TESSERA_DETAIL_HOST_DEVICE constexpr Edge edge_of(bool is_checked, bool is_grouped, std::int64_t extent, int tile)
{
    return is_checked                         ? (is_grouped ? Edge::whole : Edge::none)
           : extent > 0 && extent % tile == 0 ? Edge::whole
                                              : Edge::ragged;
}
/// True for views whose rows a vector names. They are compared with its length in any case.
template <class View>
inline constexpr bool is_gathered = requires(const View& view) { view.row_in_memory(0); };
/// True if a launch checks that a view is whole tiles, so that a kernel need not.
template <class Machine, class View>
inline constexpr bool is_whole = Machine::whole_tiles && !is_gathered<View>;
/// What a machine does at the end of a matrix.
template <class Machine, class View>
TESSERA_DETAIL_HOST_DEVICE constexpr Edges edges_of()
{
    return {edge_of(is_whole<Machine, View>, Machine::ctas > 1, View::extents::rows, View::rows),
            edge_of(is_whole<Machine, View>, Machine::ctas > 1, View::extents::columns, View::columns)};
}

/// What an `Input` has.
template <class T, class Order>
struct InputState {
    AnyTensorMap<3> map;
    Memory<const T, Order> memory;
    bool has_map = false;  // TMA can load tiles
};

/// What an `Output` has.
template <class T, class Order>
struct OutputState {
    Memory<T, Order> memory;
    TileRaster raster;
};

/// What `Numbers` have.
template <class T>
struct NumbersState {
    const T* data = nullptr;
    std::size_t size = 0;
    int device = -1;
};

/// Tile rows of a raster group: CTAs that run at the same time share rows and columns of the inputs in L2.
inline constexpr std::uint32_t raster_band = 8;

/// Returns how many tiles cover a side of a matrix.
TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t tiles_along(std::int64_t extent, std::int64_t tile)
{
    return (extent + tile - 1) / tile;
}

/// Returns the order of the tiles of an output.
template <class T, class Order>
TileRaster raster_of(const Memory<T, Order>& memory, std::int64_t rows, std::int64_t columns)
{
    return TileRaster(static_cast<std::uint32_t>(tiles_along(memory.rows, rows)),
                      static_cast<std::uint32_t>(tiles_along(memory.columns, columns)), raster_band);
}

}  // namespace tessera::tile::detail
