#pragma once

/// Host side of the Hopper kernels: the list of compiled configurations, and what a launch needs to know about each.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tessera::kernels {

/// Counters per shared tile and CTA of a cluster.
inline constexpr int hopper_tile_counters = 3;

/// One compiled configuration. The kernel's only parameter is a `HopperArguments` by value.
struct HopperKernel {
    std::string_view name;  // stable: tuning caches contain it
    const void* function;   // for cudaLaunchKernelExC
    int tile_m;             // rows of D per CTA
    int tile_n;             // columns of D per CTA
    int block_k;            // K of one stage, in elements
    int stages;             // depth of the ring
    int stages_in_turn;     // the stages of a tile are a multiple of this
    int consumers;          // warpgroups that multiply
    bool ping_pong;         // each consumer has its own tile
    bool shares_tiles;      // stream-K and cluster split-K are possible
    int two_level_columns;  // that two-level accumulation of 8-bit products multiplies at a time; 0: not supported
    bool copies;            // has the fallback load; its clusters can only split K
    bool carries_c;         // C may come through the ring
    bool streams;           // has epilogues with code of their own besides the plain one, for a D of 16 bits
    bool streams_parts;     // these include gelu and silu
    bool gates;             // the tile can hold gated pairs
    int epilogue_columns;   // of A * B that an epilogue without code of its own finishes at a time
    int c_slots_16_bit;     // slots of the ring that a tile of C then fills, by the size of its elements
    int c_slots_f32;
    int ctas;                  // CTAs per SM
    int threads;               // per CTA, one-dimensional
    std::size_t shared_bytes;  // dynamic shared memory per CTA

    /// Returns true if the CTAs of a cluster may split K.
    bool has_layers() const noexcept { return shares_tiles && !ping_pong; }

    /// Workspace for the partial sums of shared tiles, for a launch of `clusters` clusters of `cluster_size` CTAs.
    std::size_t workspace_bytes(std::size_t clusters, std::size_t cluster_size) const noexcept
    {
        return 2 * clusters * cluster_size * static_cast<std::size_t>(tile_m * tile_n) * sizeof(float);
    }
    /// Counters of this launch, all zero before and after it.
    std::size_t workspace_counters(std::size_t clusters, std::size_t cluster_size) const noexcept
    {
        return 2 * clusters * cluster_size * hopper_tile_counters;
    }
};

/// Rows of a box of an M- or N-major operand: 128 bytes of 16-bit elements.
inline constexpr int hopper_mn_major_lines = 64;

/// Rows of a box of D in a TMA store.
inline constexpr int hopper_store_rows = 64;

/// Returns the configurations for inputs of `element_bytes` (1, 2 or 4), in a fixed order. Empty if this build has no
/// code for compute capability 9.0.
std::span<const HopperKernel> hopper_kernels(std::size_t element_bytes);

}  // namespace tessera::kernels
