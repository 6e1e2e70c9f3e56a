#pragma once

/// Parameters of the Hopper kernel: the problem, how it is divided among clusters, and the tensor maps.

#include <cstdint>

#include "kernels/gemm/gemm_arguments.hpp"
#include "tessera/detail/divisor.hpp"
#include "tessera/device/stream_k.hpp"
#include "tessera/tensor_map.hpp"

namespace tessera::kernels {

/// Element types of A and B that one kernel instance distinguishes at run time.
enum class HopperTypes : std::uint8_t { f16, bf16, tf32, e4m3_e4m3, e4m3_e5m2, e5m2_e4m3, e5m2_e5m2 };

/// The epilogues that have code of their own from the accumulators to the TMA store.
enum class HopperFinishing : std::uint8_t {
    plain,           ///< alpha * A * B
    residual,        ///< alpha * A * B + beta * C, with C from the ring; C and D of 16 bits
    bias,            ///< with a bias per column or none, and none or relu; D of 16 bits
    bias_gelu_tanh,  ///< the same, but with gelu_tanh
    bias_gelu,       ///< the same, but with gelu
    bias_silu,       ///< the same, but with silu
    gated_silu,      ///< gated pairs with silu, with a bias per column or none; D of 16 bits
    other,           ///< anything else, with one copy of all operations
};

/// How work tiles are distributed over the clusters of the grid.
struct HopperWork {
    std::uint32_t tiles;                // cluster tiles of all batches
    tessera::detail::Divisor k_blocks;  // stages of K per tile
    std::uint32_t c_slots;              // slots of the ring after the stages of a whole tile, which carry the tile of C
    bool skip_k;                        // empty product: its one stage is loaded from beyond the operands, as zeros
    bool stream_k;                      // clusters may share tiles
    StreamKSplit split;                 // for stream_k
};

/// Global memory for the partial sums of shared tiles. `HopperKernel::workspace_bytes` returns its size.
struct HopperWorkspace {
    float* partials;          // fp32: [2 * clusters][cluster size][tile_m][tile_n]
    std::uint32_t* arrivals;  // [2 * clusters][cluster size][hopper_tile_counters]; zero before and after a launch
};

struct HopperArguments {
    AnyTensorMap<3> a;  // dimensions: contiguous, other, batch
    AnyTensorMap<3> b;
    AnyTensorMap<3> d;               // boxes of 64 rows of 128 bytes, or of the tile's width if that is less
    AnyTensorMap<3> d_rest;          // boxes for the rest of a tile's width, if any
    AnyTensorMap<3> pre_activation;  // boxes as those of D; if stores_pre_activation_by_tma
    AnyTensorMap<3> pre_activation_rest;
    AnyTensorMap<3> c;  // boxes of 64 rows of 128 bytes, or of the tile's width if that is less; if work.c_slots > 0
    AnyTensorMap<3> c_rest;  // boxes for the rest of a tile's width, if any
    GemmArguments gemm;
    HopperWork work;
    HopperWorkspace workspace;
    // Cluster shape; powers of two. The cluster size divided by both is the number of CTAs that split K.
    std::uint32_t cluster_m;  // CTAs with the same tile column; they share B
    std::uint32_t cluster_n;  // CTAs with the same tile row; they share A
    // Rows of a tile of A and B that TMA loads. A skinny operand has fewer than the tile; the others are zeroed once.
    std::uint32_t a_rows;
    std::uint32_t b_rows;
    std::uint32_t prefetched_stages;  // stages that each CTA prefetches into L2 while the previous kernel ends
    // Gated pairs: a tile of B has the gates' columns of half as many columns of D, then the others.
    std::uint32_t log2_columns_of_pair;  // 1 with gated pairs, otherwise 0
    std::int32_t b_second_half;          // N-major B: rows from the middle of a tile to its second half; otherwise 0
    HopperTypes types;
    bool two_level;  // 8-bit inputs: add the tensor core's sums over 128 of K in fp32
    bool a_k_major;  // contiguous along K; otherwise along M
    bool b_k_major;  // contiguous along K; otherwise along N
    bool a_batched;  // otherwise one matrix serves all batches
    bool b_batched;
    bool c_batched;
    bool a_read_once;  // streamed: one cluster reads it, so L2 need not keep it
    bool b_read_once;
    HopperFinishing finishing;          // `other` if TMA cannot address D
    bool stores_by_tma;                 // TMA can address D
    bool stores_pre_activation_by_tma;  // and the pre-activation
    bool a_by_threads;                  // fallback load: TMA cannot address A, or wgmma cannot read its major
    bool b_by_threads;
};

}  // namespace tessera::kernels
