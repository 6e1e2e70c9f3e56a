#pragma once

/// The names that device code in docs/kernels.md uses without declaring them: parameters of a function around each piece.

#include <tessera/device/accumulator.cuh>
#include <tessera/device/clc.cuh>
#include <tessera/device/mma.cuh>
#include <tessera/device/mma_sync_sparse.cuh>
#include <tessera/device/output_partition.cuh>
#include <tessera/device/tma.cuh>

#include <cstdint>
#include <utility>

using namespace tessera;

using Map = TensorMap<bf16, Box<64, 128>, Swizzle::b128>;
using Tile = SharedTile<bf16, Box<64, 128>, Swizzle::b128>;
using Layout = SharedLayout<Major::k, Swizzle::b128, 128, 64, sizeof(bf16)>;
using Ring = RingBarriers<FilledByTma, FreedByTensorCore, 4>;
using Sums = RingBarriers<AccumulatorFull, AccumulatorEmpty, 1>;

__device__ inline std::uint32_t shared_address(const Tile& tile)
{
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(tile.raw_swizzled_bytes()));
}
__device__ void store(OutputTile<128, 128> tile);

#define TESSERA_KERNEL_NAMES                                                                                     \
    Ring &ring, BarriersPublished published, RingConsumer<Ring>&consumer, const Map &a_map, const Map &b_map,    \
        Tile(&a)[4], Tile(&b)[4], TmemSlot &tmem_slot, const TmemAccumulator<128, CtaGroup::one>&accumulator,    \
        Sums &sums, ClcStorage<2>&clc, BarriersPublishedToCluster pair_published,                                \
        const OutputPartition<128, 128>&partition, unsigned warp, unsigned row, unsigned column, unsigned depth, \
        unsigned steps, std::uint32_t word
