#pragma once

/// The parameter of the mma.sync kernel.

#include <cstdint>

#include "../gemm/gemm_arguments.hpp"
#include "tessera/tensor_map.hpp"

namespace tessera::kernels {

struct MmaArguments {
    AnyTensorMap<3> a_map;  // of the tiles, where TMA loads them
    AnyTensorMap<3> b_map;
    GemmArguments gemm;
    float* partials;  // (tiles, splits, tile_m * tile_n), in the order of the accumulators; null without split-K
    std::uint32_t* arrivals;  // one per tile: zero before and after a launch
    std::uint32_t splits;     // CTAs of a tile: each has a part of K
    std::uint32_t steps;      // of each of them, of 128 bytes along K; the first `longer_splits` have one more
    std::uint32_t longer_splits;
    std::uint32_t stages;            // of the ring: see mma_most_stages
    std::uint32_t staged_fragments;  // that each warp stages at a time, 16 rows each, where the CTA stages a tile
    bool in_vectors;  // D, C and a bias per column come 16 bytes of D at a time, and the epilogue has nothing else
    bool two_level;   // the sum of a stage is added to an f32 sum, for 8-bit elements
    bool a_k_major;   // for the kernels of any order
    bool b_k_major;
};

}  // namespace tessera::kernels
