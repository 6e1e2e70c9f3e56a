#pragma once

/// The raster of the Hopper kernel. The order is that of `grouped_tile` (kernels/gemm/tile_raster.cuh), but the host
/// prepares the divisions.

#include <algorithm>
#include <cstdint>

#include "kernels/gemm/divisor.hpp"
#include "kernels/gemm/tile_index.hpp"
#include "tessera/detail/host_device.hpp"

namespace tessera::kernels {

class HopperRaster {
public:
    HopperRaster() = default;
    /// @param tiles_m, tiles_n  tiles of one matrix; the tiles of all batches together are fewer than 2^31
    /// @param band  height of a raster group in tiles; a group is walked column by column
    HopperRaster(std::uint32_t tiles_m, std::uint32_t tiles_n, std::uint32_t band)
        : batch_(tiles_m * tiles_n),
          band_tiles_(std::min(band, tiles_m) * tiles_n),
          band_rows_(std::min(band, tiles_m)),
          last_rows_(tiles_m % band_rows_.value() == 0 ? band_rows_.value() : tiles_m % band_rows_.value()),
          tiles_m_(tiles_m)
    {}

    TESSERA_DETAIL_HOST_DEVICE TileIndex place(std::uint32_t tile) const
    {
        const std::uint32_t batch = batch_.quotient(tile);
        const std::uint32_t in_batch = tile - batch * batch_.value();
        const std::uint32_t band = band_tiles_.quotient(in_batch);
        const std::uint32_t in_band = in_batch - band * band_tiles_.value();
        const std::uint32_t first_row = band * band_rows_.value();
        const bool is_last = tiles_m_ - first_row <= band_rows_.value();
        const std::uint32_t column = is_last ? last_rows_.quotient(in_band) : band_rows_.quotient(in_band);
        const std::uint32_t row = in_band - column * (is_last ? last_rows_.value() : band_rows_.value());
        return {.m = first_row + row, .n = column, .batch = batch};
    }

private:
    Divisor batch_;
    Divisor band_tiles_;
    Divisor band_rows_;
    Divisor last_rows_;  // for the last group, which may be shorter
    std::uint32_t tiles_m_;
};

}  // namespace tessera::kernels
