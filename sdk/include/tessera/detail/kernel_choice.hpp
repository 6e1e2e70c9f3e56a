#pragma once

/// @file
/// @brief The result of choosing a kernel: a variant and, if the variant has several, a configuration and its launch.

#include <cstdint>

#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// A plain value; compared, cached and written to files as a whole.
struct KernelChoice {
    Variant variant = Variant::automatic;
    std::uint8_t config = 0;     // row in the variant's table
    std::uint8_t cluster_m = 1;  // CTAs of a cluster
    std::uint8_t cluster_n = 1;
    std::uint8_t cluster_k = 1;  // cluster split-K: parts that K is divided into
    bool swapped = false;        // D^T = B^T * A^T is computed: the kernel's M is the problem's N
    bool stream_k = false;       // tiles may be shared between clusters, and need a workspace
    std::uint8_t band = 1;       // tile rows of a raster group
    std::uint16_t clusters = 0;  // number of clusters in the grid

    friend bool operator==(const KernelChoice&, const KernelChoice&) = default;
};

}  // namespace tessera::detail
