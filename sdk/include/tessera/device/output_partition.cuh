#pragma once

/// @file
/// @ingroup device_outputs
/// @brief `OutputPartition`: a batch of matrices cut into tiles that share no element, one for each work tile.

#include <cstdint>
#include <cuda/std/cassert>
#include <type_traits>

#include "tessera/detail/host_device.hpp"
#include "tessera/device/clc.cuh"
#include "tessera/device/tile_raster.hpp"
#include "tessera/device/tma.cuh"

namespace tessera {

namespace detail {

/// Stops the kernel with a message; a function of its own as those of obligation.cuh.
__device__ __noinline__ inline void output_part_is_outside_of_its_tile()
{
    __assert_fail("tessera: a part of an output tile is outside of the tile", "tessera/device/output_partition.cuh",
                  __LINE__, "output_part_is_outside_of_its_tile");
    __trap();
}

}  // namespace detail

/// A tile of (Rows, Columns) elements of the output. Elements outside of the matrix are not stored. Made by an
/// OutputPartition, and by cutting a tile into parts.
/// @tparam Rows     in elements
/// @tparam Columns  in elements
template <std::uint32_t Rows, std::uint32_t Columns>
class OutputTile {
public:
    /// Returns the tile's first row in the matrix.
    __device__ std::uint32_t first_row() const { return first_row_; }
    /// Returns the tile's first column in the matrix.
    __device__ std::uint32_t first_column() const { return first_column_; }
    /// Returns the number of the matrix in the batch.
    __device__ std::uint32_t batch() const { return batch_; }

    /// Returns part (`row`, `column`) of the tile, cut into parts of (PartRows, PartColumns) elements. A part outside of the
    /// tile, which would be another's, stops the kernel with a message.
    /// @tparam PartRows     divides Rows
    /// @tparam PartColumns  divides Columns
    /// @param row     in parts, less than Rows / PartRows
    /// @param column  in parts, less than Columns / PartColumns
    template <std::uint32_t PartRows, std::uint32_t PartColumns>
    __device__ OutputTile<PartRows, PartColumns> part(std::uint32_t row, std::uint32_t column) const
    {
        static_assert(PartRows <= Rows && PartColumns <= Columns && Rows % PartRows == 0 && Columns % PartColumns == 0,
                      "tessera: the parts of an output tile must have equal sizes and be inside the tile");
        if (row >= Rows / PartRows || column >= Columns / PartColumns) {
            detail::output_part_is_outside_of_its_tile();
        }
        return OutputTile<PartRows, PartColumns>(first_row_ + row * PartRows, first_column_ + column * PartColumns,
                                                 batch_);
    }

private:
    template <std::uint32_t, std::uint32_t>
    friend class OutputPartition;
    template <std::uint32_t, std::uint32_t>
    friend class OutputTile;
    __device__ OutputTile(std::uint32_t first_row, std::uint32_t first_column, std::uint32_t batch)
        : first_row_(first_row), first_column_(first_column), batch_(batch)
    {}

    std::uint32_t first_row_;
    std::uint32_t first_column_;
    std::uint32_t batch_;
};

/// A batch of matrices cut into tiles of (TileRows, TileColumns) elements.
///
/// @code{.cpp}
/// const OutputPartition<128, 256> output(rows, columns, raster_group);
/// for (WorkItem work = queue.first(); work; work = queue.next_of_warp()) {
///     const OutputTile<128, 256> tile = output.tile(work);
///     if (elect_one()) {
///         tma_store(d_map, tile.part<32, 64>(0, 1), staged);
///     }
/// }
/// @endcode
///
/// A `TileRaster` says which work tile is where. Make the partition on the host, as the raster, and pass it to the kernel
/// by value.
/// @tparam TileRows     in elements
/// @tparam TileColumns  in elements
template <std::uint32_t TileRows, std::uint32_t TileColumns>
class OutputPartition {
public:
    /// Cuts matrices of (rows, columns) elements.
    /// @param rows     in elements
    /// @param columns  in elements
    /// @param band     tile rows of a raster group
    TESSERA_DETAIL_HOST_DEVICE OutputPartition(std::uint32_t rows, std::uint32_t columns, std::uint32_t band)
        : raster_((rows + TileRows - 1) / TileRows, (columns + TileColumns - 1) / TileColumns, band)
    {}
    /// Cuts matrices whose tiles `raster` numbers.
    /// @param raster  of tiles of (TileRows, TileColumns) elements
    TESSERA_DETAIL_HOST_DEVICE explicit OutputPartition(const TileRaster& raster) : raster_(raster) {}

    /// Returns the position of a work tile. There must not be more work than tiles in all batches.
    __device__ TilePosition position(const WorkItem& work) const { return raster_.position(work.index()); }

    /// Returns the tile of a work tile.
    __device__ OutputTile<TileRows, TileColumns> tile(const WorkItem& work) const
    {
        const TilePosition at = position(work);
        return OutputTile<TileRows, TileColumns>(at.row * TileRows, at.column * TileColumns, at.batch);
    }

private:
    TileRaster raster_;
};

/// Stores `shared` to a part of an output tile, as `tma_store` of tma.cuh does. The map is of one matrix (rank 2) or of
/// a batch (rank 3), columns innermost; its box must be the part.
template <class T, class BoxShape, Swizzle Pattern, std::uint32_t Rows, std::uint32_t Columns, class Tile>
__device__ void tma_store(const TensorMap<T, BoxShape, Pattern>& map, const OutputTile<Rows, Columns>& part,
                          const Tile& shared)
{
    static_assert(std::is_same_v<BoxShape, Box<Columns, Rows>> || std::is_same_v<BoxShape, Box<Columns, Rows, 1>>,
                  "tessera: the output tile does not have the size of the tensor map's box");
    if constexpr (BoxShape::rank == 2) {
        tma_store(map, {static_cast<std::int32_t>(part.first_column()), static_cast<std::int32_t>(part.first_row())},
                  shared);
    } else {
        tma_store(map,
                  {static_cast<std::int32_t>(part.first_column()), static_cast<std::int32_t>(part.first_row()),
                   static_cast<std::int32_t>(part.batch())},
                  shared);
    }
}

/// Stores through an `AnyTensorMap` of a batch; a single matrix is a batch of one.
/// @param map     the map
/// @param part    where to store
/// @param shared  the part, stored as the map's box and swizzle say, and aligned for the swizzle
template <std::uint32_t Rows, std::uint32_t Columns>
__device__ __forceinline__ void tma_store(const AnyTensorMap<3>& map, const OutputTile<Rows, Columns>& part,
                                          const std::byte* shared)
{
    const std::int32_t coordinates[3] = {static_cast<std::int32_t>(part.first_column()),
                                         static_cast<std::int32_t>(part.first_row()),
                                         static_cast<std::int32_t>(part.batch())};
    tma_store(map, coordinates, shared);
}

}  // namespace tessera
