#pragma once

/// What a plan comes down to: a variant and, where the variant has configurations, which one and how it is launched.

#include <cstdint>

#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// A plain value; compared, cached and written to files as a whole.
struct KernelChoice {
    Variant variant = Variant::automatic;
    std::uint8_t config = 0;     // row of the variant's table
    std::uint8_t cluster_m = 1;  // CTAs of a cluster
    std::uint8_t cluster_n = 1;
    std::uint8_t cluster_k = 1;  // layers, which divide K
    bool swapped = false;        // D^T = B^T * A^T is computed: the kernel's M is the problem's N
    bool stream_k = false;       // tiles may be shared between clusters, and need a workspace
    std::uint8_t band = 1;       // tile rows of the raster
    std::uint16_t clusters = 0;  // of the grid

    friend bool operator==(const KernelChoice&, const KernelChoice&) = default;
};

}  // namespace tessera::detail
