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
