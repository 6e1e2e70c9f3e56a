#pragma once

#include <cstdint>

namespace tessera::kernels {

/// The index of an output tile: tile row, tile column, matrix of the batch.
struct TileIndex {
    std::uint32_t m;
    std::uint32_t n;
    std::uint32_t batch;
};

}  // namespace tessera::kernels
