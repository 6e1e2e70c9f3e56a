#pragma once

/// Parameters of the Blackwell kernel: tensor maps, descriptors, and the problem.
///
/// Element types within an MMA kind, majors, swizzles and the epilogue are run-time values because they cost nothing
/// there: they only change numbers in descriptors.

#include <cstdint>

#include "kernels/gemm/gemm_arguments.hpp"
#include "tessera/device/smem_descriptor.hpp"
#include "tessera/device/stream_k.hpp"
#include "tessera/tensor_map.hpp"

namespace tessera::kernels {

/// How a CTA loads its part of one stage of A or B with TMA, and how the tensor core reads it. A part is what one TMA
/// destination holds: 128 rows of A, or `b_rows()` rows of B, by one stage of K.
struct StagedOperand {
    AnyTensorMap<3> map;            // dimensions: contiguous, other, batch
    TileLayout layout;              // of the part in shared memory
    std::uint64_t descriptor;       // shared-memory descriptor of the part, as if it were at address 0
    std::uint32_t descriptor_step;  // from one instruction's K to the next, in units of 16 bytes
    std::uint32_t boxes;            // TMA loads that fill the part
    std::uint32_t box_bytes;        // bytes from one box to the next
    std::uint32_t loaded_bytes;     // that the boxes of a part bring: its first rows, if the operand has fewer
    std::uint32_t box_lines;        // runs of a box: rows, or elements of K
    std::int32_t box_rows;          // distance between two boxes along M or N, in elements
    std::int32_t box_k;             // distance between two boxes along K, in elements
    bool by_threads;                // TMA cannot address the operand: the fallback load copies it
    bool read_once;                 // streamed: one cluster reads each part, so L2 need not keep it
    bool batched;                   // the map's third dimension is the batch; otherwise its coordinate is always 0
};

/// Global memory for the sums of shared tiles.
struct BlackwellWorkspace {
    float* partials;          // fp32: [2 * clusters][partial_floats()]
    std::uint32_t* arrivals;  // [clusters][partial_counters()]; zero before and after a launch
};

struct BlackwellArguments {
    StagedOperand a;
    StagedOperand b;
    AnyTensorMap<3> c;  // boxes of 32 rows of `store_columns()`
    AnyTensorMap<3> d;  // boxes of 32 rows of `store_columns()`
    GemmArguments gemm;
    BlackwellWorkspace workspace;     // for stream_k
    StreamKSplit split;               // for stream_k
    std::uint32_t instruction;        // instruction descriptor of tcgen05.mma
    std::uint32_t k_steps;            // stages of K per tile; 0 if the product is empty
    std::uint32_t block_k;            // K of one stage, in elements
    std::uint32_t prefetched_stages;  // that each CTA asks for in L2 while the previous kernel ends
    std::uint32_t units;              // work tiles: cluster tiles of all batches
    bool stream_k;                    // clusters may share tiles
    bool stores_by_tma;               // TMA can address D and, if beta is not zero, C
    bool c_batched;                   // C's map has a batch dimension that counts
};

}  // namespace tessera::kernels
