#pragma once

/// The shared memory of a CTA.

#include <cstddef>
#include <cstdint>

#include "hopper_config.hpp"
#include "tessera/device/tma.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

/// One slot for each stage: filled by TMA or by the load warpgroup, freed by the consumers of every CTA that was sent
/// it.
template <class Config>
using HopperRing = RingBarriers<FilledByTma, FreedByThreads, Config::config.stages>;

/// A part of a tile's sums: number `index` of `count`, or nothing if `count` is 0.
struct HopperSlice {
    std::uint32_t index;
    std::uint32_t count;
};

template <class Config>
struct alignas(1024) HopperShared {
    struct Stage {
        std::byte
            a[Config::config.tile_m * HopperConfig::hopper_row_bytes];  // (tile_m, 128 bytes of K), see HopperOperand
        std::byte b[Config::config.tile_n * HopperConfig::hopper_row_bytes];  // (tile_n, 128 bytes of K)
    };

    Stage stages[Config::config.stages];
    std::byte store[Config::config.consumers][Config::config.store_buffers][HopperConfig::hopper_store_bytes];
    HopperRing<Config> ring;
    HopperSlice slice[Config::config.consumers];  // of a shared tile: what the consumers that have the tile add up
};

/// Waits for all threads of all consumers.
template <class Config>
__device__ __forceinline__ void synchronize_consumers()
{
    NamedBarrier<128 * Config::config.consumers>(3).synchronize();  // 0 is the whole CTA's, 1 and 2 are each consumer's
}

/// Waits until the kernel before this one is done and its results are there (PTX ISA, "griddepcontrol"): each role
/// does before it first touches memory that kernels write. From then on the kernel behind this one may start, and
/// waits.
__device__ __forceinline__ void await_kernel_before()
{
    cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
}

}  // namespace tessera::kernels
