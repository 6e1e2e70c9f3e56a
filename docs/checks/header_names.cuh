#pragma once

/// The names that device code in the comments of the headers uses without declaring them: parameters of a function
/// around each piece.

#include <tessera/device/disjoint_span.cuh>
#include <tessera/device/mma_sync_sparse.cuh>
#include <tessera/device/wgmma.cuh>
#include <tessera/tessera.hpp>

#include "kernel_names.cuh"

using Part = SharedTile<float, Box<64, 32>, Swizzle::none>;
using Bytes = SharedTile<std::uint8_t, Box<128, 128>, Swizzle::b128>;

__device__ void compute(const Tile& tile);
__device__ void store(const RegisterTile<float, 32>& part, unsigned column);

#define TESSERA_HEADER_NAMES                                                                              \
    TESSERA_KERNEL_NAMES, Tile(&b_halves)[4][2], RingProducer<Ring>&producer, StaticWorkQueue &queue,     \
        Tmem<Allocated, 512, CtaGroup::one>&tensor_memory, SharedScales<128>&a_scales,                    \
        const TensorMap<float, Box<64, 32>>&d_map, Part &staged, std::uint32_t bytes, std::uint32_t rows, \
        std::uint32_t columns, std::uint32_t raster_group, const Bytes &a_bytes, const Bytes &b_bytes,    \
        std::uint32_t a_word, std::uint32_t b_word
