#pragma once

/// Layout of the Blackwell kernel's dynamic shared memory. It is the same in every CTA of a cluster, since CTAs address
/// each other's memory by the same offsets.

#include <cstddef>

#include "blackwell_config.hpp"
#include "tessera/device/clc.cuh"
#include "tessera/device/pipeline.cuh"
#include "tessera/device/tmem.cuh"

namespace tessera::kernels {

/// Staging of one epilogue warp: two buffers of 32 rows, each for C before and D after.
struct StagingBuffers {
    alignas(1024) std::byte bytes[staging_buffers][staging_bytes];
};

/// The load warp has begun with a tile: then the scheduler may request the next one.
using TileBegun = RingBarriers<FilledByThreads, FreedByThreads, 1>;

/// The token of the kernel's barriers.
template <class Config>
using BlackwellPublished = PublishedTo<Config::config.cluster>;

template <class Config>
struct BlackwellStorage {
    static constexpr BlackwellConfig config = Config::config;
    using Stages = RingBarriers<FilledByTma, FreedByTensorCore, Config::config.stages, Config::config.group>;
    using Accumulators =
        RingBarriers<AccumulatorFull, AccumulatorEmpty, Config::config.accumulators, Config::config.group>;

    alignas(1024) std::byte a[Config::config.stages][Config::config.m_tiles][Config::config.a_bytes()];
    alignas(1024) std::byte b[Config::config.stages][Config::config.b_bytes()];
    StagingBuffers staging[Config::config.all_epilogue_warps()];
    Stages stages;
    Accumulators accumulators;
    ClcStorage<clc_slots> clc;
    TileBegun tile_begun;
    BarrierWord<FilledByTma> c_loaded[Config::config.all_epilogue_warps()];
    TmemSlot tensor_memory;
};

}  // namespace tessera::kernels
