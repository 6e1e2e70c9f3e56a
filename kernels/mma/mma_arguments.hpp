#pragma once

/// The parameter of the mma.sync kernel.

#include <cstdint>

#include "../gemm/gemm_arguments.hpp"
#include "tessera/detail/divisor.hpp"
#include "tessera/tensor_map.hpp"

namespace tessera::kernels {

struct MmaArguments {
    AnyTensorMap<3> a_map;  // of the tiles, where TMA loads them
    AnyTensorMap<3> b_map;
    GemmArguments gemm;
    float* partials;            // (divided tiles, parts, tile_m * tile_n), in the order of the accumulators
    std::uint32_t* arrivals;    // one per divided tile: zero before and after a launch
    std::uint32_t whole_tiles;  // the first ones: each has a CTA; the others are divided
    std::uint32_t parts;        // of a divided tile along K: each has a CTA
    std::uint32_t tile_steps;   // of 128 bytes along K, of a tile
    std::uint32_t part_steps;   // of each part but the last, which has the rest; the first `longer_parts` have one more
    std::uint32_t longer_parts;
    bool parts_in_turn;  // stream-K: the first parts of all divided tiles come first, and the last ones last
    tessera::detail::Divisor in_turn;  // divided tiles then, else parts of a tile: what numbers of CTAs count first
    std::uint32_t stages;              // of the ring: see mma_most_stages
    std::uint32_t staged_fragments;    // that each warp stages at a time, 16 rows each, where the CTA stages a tile
    bool in_vectors;  // D, C and a bias per column come 16 bytes of D at a time, and the epilogue has nothing else
    bool two_level;   // the sum of a stage is added to an f32 sum, for 8-bit elements
    bool a_k_major;   // for the kernels of any order
    bool b_k_major;
};

}  // namespace tessera::kernels
