#pragma once

/// What the Hopper kernel is told besides the product itself: how it is cut into work, and through which maps it is
/// loaded.

#include <cstdint>

#include "hopper_raster.hpp"
#include "kernels/common/divisor.hpp"
#include "kernels/common/gemm_arguments.hpp"
#include "tessera/tensor_map.hpp"

namespace tessera::kernels {

/// Element types of A and B that one instance of the kernel tells apart at run time.
enum class HopperTypes : std::uint8_t { f16, bf16, tf32, e4m3_e4m3, e4m3_e5m2, e5m2_e4m3, e5m2_e5m2 };

/// How the work is dealt to the clusters of the grid.
struct HopperWork {
    HopperRaster raster;  // of tiles of a cluster: cluster_m * tile_m by cluster_n * tile_n
    std::uint32_t tiles;  // all, batches included
    Divisor k_blocks;     // stages of one tile
    bool skip_k;    // there is nothing to multiply: the one stage is loaded from beyond the operands' ends, as zeros
    bool stream_k;  // tiles may be shared: the stages of all, laid end to end and below 2^31, are dealt evenly

    // Of stream_k: cluster c begins at stage floor(c * stages / clusters), in whole numbers and a rest below 1.
    Divisor clusters;
    std::uint32_t stages_per_cluster;
    std::uint32_t stages_left;
    float clusters_per_stage;
};

/// Memory for sums of tiles that several clusters share: `HopperKernel::workspace_bytes` says how much.
struct HopperWorkspace {
    float* partials;          // [2 * clusters][cluster size][tile_m][tile_n]
    std::uint32_t* arrivals;  // [2 * clusters][cluster size][hopper_tile_counters], all zero before and after a launch
};

struct HopperArguments {
    AnyTensorMap<3> a;  // contiguous, strided, batch
    AnyTensorMap<3> b;
    AnyTensorMap<3> d;       // boxes of 128 bytes, or of a narrower tile's width
    AnyTensorMap<3> d_rest;  // of what remains of a tile's width, if anything
    GemmArguments gemm;
    HopperWork work;
    HopperWorkspace workspace;
    // Powers of two:
    std::uint32_t cluster_m;  // CTAs of a cluster that have the same tile column and share B
    std::uint32_t cluster_n;  // that have the same tile row and share A; the rest of the cluster's size divides K
    // Rows of a tile of A and B that TMA loads: of a skinny operand no more than it has. The others are cleared once.
    std::uint32_t a_rows;
    std::uint32_t b_rows;
    std::uint32_t prefetched_stages;  // that each CTA brings into L2 while the kernel before this one ends
    HopperTypes types;
    bool two_level;  // 8-bit: adds the tensor core's sums of 128 of K up in fp32
    bool a_k_major;
    bool b_k_major;
    bool a_batched;  // else one matrix serves all batches
    bool b_batched;
    bool a_read_once;  // by one cluster, which need not keep it in L2
    bool b_read_once;
    bool plain;          // D is nothing but alpha * A * B
    bool stores_by_tma;  // and TMA can address it
    bool a_by_threads;   // TMA cannot address A, or the tensor core cannot read its order: the load warpgroup copies
    bool b_by_threads;
};

}  // namespace tessera::kernels
