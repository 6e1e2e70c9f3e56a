#pragma once

/// @file
/// @ingroup device_outputs
/// @brief `TileRaster`: the order in which the tiles of a batch of matrices are computed.

#include <cstdint>

#include "tessera/detail/divisor.hpp"
#include "tessera/detail/host_device.hpp"

namespace tessera {

/// The position of a tile, counted in tiles.
struct TilePosition {
    /// The row, in tiles.
    std::uint32_t row;
    /// The column, in tiles.
    std::uint32_t column;
    /// The number of the matrix in the batch.
    std::uint32_t batch;
};

/// Numbers the tiles of a batch of matrices, one matrix after the other.
///
/// In each matrix the tiles are numbered in raster groups of `band` tile rows, each group column by column. CTAs or
/// clusters that run at the same time then form a compact block, and share their rows of A and columns of B in L2.
///
/// Make it on the host, and pass it to the kernel by value: it holds the reciprocals with which `position` divides. It
/// can be made in a kernel, too, at the cost of four 64-bit divisions per thread.
class TileRaster {
public:
    /// No tiles; `position` must not be called.
    TileRaster() = default;
    /// @param tiles_m  tile rows of one matrix
    /// @param tiles_n  tile columns of one matrix; all matrices together have fewer than 2^31 tiles
    /// @param band     tile rows of a raster group, at least 1
    TESSERA_DETAIL_HOST_DEVICE TileRaster(std::uint32_t tiles_m, std::uint32_t tiles_n, std::uint32_t band)
        : batch_(not_zero(tiles_m * tiles_n)),
          band_tiles_(not_zero(lower(band, tiles_m) * tiles_n)),
          band_rows_(not_zero(lower(band, tiles_m))),
          last_rows_(tiles_m % band_rows_.value() == 0 ? band_rows_.value() : tiles_m % band_rows_.value()),
          tiles_m_(tiles_m)
    {}

    /// Returns the number of tiles in one matrix. There must be at least one.
    TESSERA_DETAIL_HOST_DEVICE std::uint32_t tiles() const { return batch_.value(); }

    /// Returns the position of tile `tile`, counted from 0 through all matrices of the batch.
    TESSERA_DETAIL_HOST_DEVICE TilePosition position(std::uint32_t tile) const
    {
        const std::uint32_t batch = batch_.quotient(tile);
        const std::uint32_t in_batch = tile - batch * batch_.value();
        const std::uint32_t band = band_tiles_.quotient(in_batch);
        const std::uint32_t in_band = in_batch - band * band_tiles_.value();
        const std::uint32_t first_row = band * band_rows_.value();
        const bool is_last = tiles_m_ - first_row <= band_rows_.value();
        const std::uint32_t column = is_last ? last_rows_.quotient(in_band) : band_rows_.quotient(in_band);
        const std::uint32_t row = in_band - column * (is_last ? last_rows_.value() : band_rows_.value());
        return {first_row + row, column, batch};
    }

private:
    TESSERA_DETAIL_HOST_DEVICE static std::uint32_t lower(std::uint32_t x, std::uint32_t y) { return x < y ? x : y; }
    /// An empty matrix has no position to compute, but must not divide by zero.
    TESSERA_DETAIL_HOST_DEVICE static std::uint32_t not_zero(std::uint32_t x) { return x == 0 ? 1 : x; }

    detail::Divisor batch_;
    detail::Divisor band_tiles_;
    detail::Divisor band_rows_;
    detail::Divisor last_rows_;  // for the last group, which may be lower
    std::uint32_t tiles_m_;
};

}  // namespace tessera
