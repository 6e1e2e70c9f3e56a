#pragma once

/// The Hopper kernels as the host sees them: which configurations there are, and the facts a launch needs.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tessera::kernels {

/// Counters of a tile that is shared, of each CTA of the clusters.
inline constexpr int hopper_tile_counters = 3;

/// One compiled configuration. Its entry point takes one `HopperArguments` by value.
struct HopperKernel {
    std::string_view name;  // stable: it appears in tuning caches
    const void* function;   // for cudaLaunchKernelExC
    int tile_m;             // output tile of one CTA
    int tile_n;
    int block_k;               // elements of K in one stage
    int stages;                // of the ring
    int stages_in_turn;        // a tile has a multiple of them
    int consumers;             // warpgroups that multiply
    bool ping_pong;            // each consumer has a tile of its own
    bool shares_tiles;         // several clusters, or layers of one, may share a tile
    bool two_level;            // can add up 8-bit products in two levels
    bool copies;               // A or B by threads, without clusters along M and N; else TMA loads both
    int ctas;                  // that fit on a multiprocessor
    int threads;               // per CTA, one-dimensional
    std::size_t shared_bytes;  // dynamic shared memory

    /// Whether layers of a cluster may divide K.
    bool has_layers() const noexcept { return shares_tiles && !ping_pong; }

    /// What a launch of `clusters` clusters of `cluster_size` CTAs needs to share tiles.
    std::size_t workspace_bytes(std::size_t clusters, std::size_t cluster_size) const noexcept
    {
        return 2 * clusters * cluster_size * static_cast<std::size_t>(tile_m * tile_n) * sizeof(float);
    }
    /// Counters of such a launch, all zero before and after it.
    std::size_t workspace_counters(std::size_t clusters, std::size_t cluster_size) const noexcept
    {
        return 2 * clusters * cluster_size * hopper_tile_counters;
    }
};

/// Lines of a box of an operand that is contiguous along M or N: 128 bytes of 16-bit elements.
inline constexpr int hopper_mn_major_lines = 64;

/// Rows of a box of D that is stored by TMA.
inline constexpr int hopper_store_rows = 64;

/// The configurations for A and B of elements of this size (1, 2 or 4 bytes), in a fixed order. Empty if this build has
/// no code for compute capability 9.0.
std::span<const HopperKernel> hopper_kernels(std::size_t element_bytes);

}  // namespace tessera::kernels
