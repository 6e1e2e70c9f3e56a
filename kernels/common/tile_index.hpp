#pragma once

#include <cstdint>

namespace tessera::kernels {

/// An output tile, counted in tiles.
struct TileIndex {
    std::uint32_t m;
    std::uint32_t n;
    std::uint32_t batch;
};

}  // namespace tessera::kernels
