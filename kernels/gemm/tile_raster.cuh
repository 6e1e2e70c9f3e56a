#pragma once

/// The raster of the SIMT kernels: which CTA of a one-dimensional grid computes which output tile.

#include <cstdint>

#include "tile_index.hpp"

namespace tessera::kernels {

/// Returns the tile of CTA `cta` in a grid of tiles_m * tiles_n * batches CTAs.
///
/// Inside a batch the raster goes through groups of `band` tile rows, each group column by column. CTAs that run at the
/// same time then form a compact block of D and share their rows of A and columns of B in L2.
__device__ inline TileIndex grouped_tile(std::uint32_t cta, std::uint32_t tiles_m, std::uint32_t tiles_n,
                                         std::uint32_t band)
{
    const std::uint32_t tiles_per_batch = tiles_m * tiles_n;  // does not overflow: it divides the grid size
    const std::uint32_t batch = cta / tiles_per_batch;
    const std::uint32_t tile = cta % tiles_per_batch;
    const std::uint32_t band_index = tile / tiles_n / band;  // not / (band * tiles_n), which could overflow
    const std::uint32_t first_row = band_index * band;
    const std::uint32_t rows = min(band, tiles_m - first_row);  // the last group may be shorter
    const std::uint32_t tile_in_band = tile - first_row * tiles_n;
    return {.m = first_row + tile_in_band % rows, .n = tile_in_band / rows, .batch = batch};
}

}  // namespace tessera::kernels
