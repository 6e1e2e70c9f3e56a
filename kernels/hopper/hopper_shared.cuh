#pragma once

/// Layout of the Hopper kernel's dynamic shared memory, and the synchronization that several roles use.

#include <cstddef>
#include <cstdint>

#include "hopper_config.hpp"
#include "tessera/device/cluster.cuh"
#include "tessera/device/tma.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

/// One slot per stage. TMA or the load warpgroup fills it; the consumers of every CTA that received the data free it.
template <class Config>
using HopperRing = RingBarriers<FilledByTma, FreedByThreads, Config::config.stages>;

/// One CTA's share of a tile to sum up: slice `index` of `count`, or nothing if `count` is 0.
struct HopperSlice {
    std::uint32_t index;
    std::uint32_t count;
};

template <class Config>
struct alignas(1024) HopperShared {
    struct Stage {
        std::byte a[Config::config.tile_m * HopperConfig::hopper_row_bytes];  // (tile_m, 128 bytes of K)
        std::byte b[Config::config.tile_n * HopperConfig::hopper_row_bytes];  // (tile_n, 128 bytes of K)
    };

    Stage stages[Config::config.stages];
    std::byte store[Config::config.consumers][Config::config.store_buffers][HopperConfig::hopper_store_bytes];
    float bias[Config::config.consumers][Config::config.bias_elements()];
    HopperRing<Config> ring;
    HopperSlice slice[Config::config.consumers];  // of a shared tile: what its consumers sum up
};

/// Number of CTAs that fill and free the same slot: those of the calling CTA's row and column, itself included.
__device__ __forceinline__ std::uint32_t sharers_of_slot(const ClusterGrid& cluster)
{
    return cluster.rows() + cluster.columns() - 1;
}
/// The CTAs of the row come first, then the others of the column.
__device__ __forceinline__ CtaRank sharer_of_slot(const ClusterGrid& cluster, std::uint32_t sharer)
{
    if (sharer < cluster.columns()) {
        return cluster.at(cluster.row(), sharer);
    }
    const std::uint32_t other = (sharer - cluster.columns()) & (cluster.rows() - 1);
    return cluster.at(other < cluster.row() ? other : other + 1, cluster.column());
}

/// Returns the same object in shared memory, by an address that went through a shuffle: the compiler would compute it again at
/// each use, from the number of the CTA in its cluster, which takes as long as a small wgmma.
template <class Shared>
__device__ __forceinline__ Shared& with_known_address(Shared& shared)
{
    const auto address = of_first_lane(static_cast<std::uint32_t>(__cvta_generic_to_shared(&shared)));
    return *static_cast<Shared*>(__cvta_shared_to_generic(address));
}

/// Byte offset of a 16-byte chunk in a buffer of rows of 128 bytes with 128-byte swizzle.
__device__ __forceinline__ unsigned hopper_swizzled(unsigned row, unsigned chunk)
{
    return row * 128 + (chunk ^ row % 8) * 16;
}

/// Waits for the 128 threads of one consumer.
__device__ __forceinline__ void synchronize_consumer(int consumer)
{
    NamedBarrier<128>(static_cast<std::uint32_t>(consumer) + 1).synchronize();  // barrier 0 is the CTA's
}

/// Waits for all threads of all consumers.
template <class Config>
__device__ __forceinline__ void synchronize_consumers()
{
    NamedBarrier<128 * Config::config.consumers>(3).synchronize();  // 0 is the CTA's, 1 and 2 each consumer's
}

/// Waits until the previous kernel is done and its results are visible (PTX ISA, "griddepcontrol"), then lets the next
/// kernel start. Each role calls it before it first touches memory that kernels write.
__device__ __forceinline__ void await_kernel_before()
{
    cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
}

}  // namespace tessera::kernels
