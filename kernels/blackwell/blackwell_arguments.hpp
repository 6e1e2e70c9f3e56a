#pragma once

/// What the Blackwell kernel is told: tensor maps, and as run-time facts whatever costs nothing at run time. Element
/// types within a kind, majors, swizzles and the epilogue are such facts: they only change numbers in descriptors.

#include <cstdint>

#include "kernels/common/gemm_arguments.hpp"
#include "tessera/device/smem_descriptor.hpp"
#include "tessera/tensor_map.hpp"

namespace tessera::kernels {

/// How a CTA's part of one stage of A or B is loaded and read.
struct StagedOperand {
    AnyTensorMap<3> map;            // contiguous dimension, other dimension, batch
    TileLayout layout;              // of the part
    std::uint64_t descriptor;       // of the part at address 0
    std::uint32_t descriptor_step;  // from one instruction's K to the next, in the descriptor's units of 16 bytes
    std::uint32_t boxes;            // TMA loads that fill the part
    std::uint32_t box_bytes;
    std::int32_t box_rows;  // from one box to the next along M or N, in elements
    std::int32_t box_k;     // from one box to the next along K
    bool by_threads;        // TMA cannot address the operand
    bool batched;           // the map has a third dimension that counts
};

struct BlackwellArguments {
    StagedOperand a;
    StagedOperand b;
    AnyTensorMap<3> c;
    AnyTensorMap<3> d;
    GemmArguments gemm;
    std::uint32_t instruction;  // descriptor
    std::uint32_t k_steps;      // stages' worth of K; 0 if the product is empty
    std::uint32_t block_k;      // elements of K in a stage
    std::uint32_t units;        // cluster tiles of all batches
    std::uint32_t band;         // cluster tile rows that are taken together
    bool copies;                // the CTA has warps that load by threads
    bool stores_by_tma;         // TMA can address D and, if it is read, C
    bool c_batched;
};

}  // namespace tessera::kernels
