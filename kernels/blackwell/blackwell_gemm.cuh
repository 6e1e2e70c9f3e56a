#pragma once

/// The Blackwell GEMM kernel: D = epilogue(A * B) with tcgen05, TMA and tensor memory. A configuration of
/// blackwell_config.hpp is its template argument.
///
/// Reads A and B (and C) through tensor maps; writes D with TMA stores, or directly if TMA cannot address it.
///
///   warps 0-3   epilogue: tensor memory -> registers -> shared memory -> D
///   warp 4      load: TMA into the ring of stages; with shared roles it issues the MMAs, too
///   warp 5      MMA: multiplies filled stages into tensor memory, which it also allocates and releases
///   warp 6      scheduler: requests tiles by cluster launch control
///   warp 7      idle
///   warps 8-11  fallback load without TMA, in configurations that copy; a second epilogue, in those that have one

#include <cuda/ptx>

#include <cstdint>

#include "blackwell_copy.cuh"
#include "blackwell_epilogue.cuh"
#include "blackwell_roles.cuh"
#include "blackwell_work.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

namespace detail {

inline constexpr std::uint32_t load_warp = 4;
inline constexpr std::uint32_t mma_warp = 5;
inline constexpr std::uint32_t scheduler_warp = 6;
inline constexpr std::uint32_t first_copy_warp = 8;
inline constexpr std::uint32_t copy_warps = 4;
inline constexpr std::uint32_t second_epilogue_warp = 8;

/// Initializes all barriers of the CTA.
template <class Config>
__device__ void initialize_barriers(const BarrierInitializer& by, BlackwellStorage<Config>& storage)
{
    constexpr BlackwellConfig config = Config::config;
    constexpr std::uint32_t copies = config.copies ? copy_warps : 0;
    // A stage is full when its bytes have landed and each copy warp has arrived. It is free when every reader of what
    // this CTA loaded is done.
    storage.stages.initialize(by, {.producers = 1 + copies * config.group_size(), .consumers = config.b_sharers()});
    storage.accumulators.initialize(by, {.producers = 1, .consumers = epilogue_warps * config.group_size()});
    storage.clc.initialize(by, config.cluster * (1 + config.all_epilogue_warps() + copies) + config.groups() + 1);
    storage.tile_begun.initialize(by, {.producers = 1, .consumers = 1});
    for (auto& word : storage.c_loaded) {
        by.initialize(word, 1);
    }
}

/// Clears the rows of a part that no load fills, so that the tensor core reads zeros. Called by all threads of the CTA.
__device__ __forceinline__ void clear_rest(std::byte* part, std::uint32_t bytes, std::uint32_t loaded)
{
    for (std::uint32_t at = loaded + threadIdx.x * sizeof(uint4); at < bytes; at += blockDim.x * sizeof(uint4)) {
        *reinterpret_cast<uint4*>(part + at) = uint4{};
    }
}

/// Clears what the loads of every stage leave. Called by all threads of the CTA, before a barrier of it.
template <class Config>
__device__ void clear_unloaded_rows(const BlackwellArguments& arguments, BlackwellStorage<Config>& storage)
{
    constexpr BlackwellConfig config = Config::config;
    if constexpr (config.group == CtaGroup::one && !config.multicast) {
        const bool clears_a = !by_threads<Config>(arguments.a) && arguments.a.loaded_bytes < config.a_bytes();
        const bool clears_b = !by_threads<Config>(arguments.b) && arguments.b.loaded_bytes < config.b_bytes();
        if (clears_a || clears_b) {
#pragma unroll 1
            for (std::uint32_t stage = 0; stage < config.stages; ++stage) {
                clear_rest(storage.a[stage][0], config.a_bytes(),
                           clears_a ? arguments.a.loaded_bytes : config.a_bytes());
                clear_rest(storage.b[stage], config.b_bytes(), clears_b ? arguments.b.loaded_bytes : config.b_bytes());
            }
            make_visible_to_tma();
        }
    }
}

}  // namespace detail

/// A work tile is a cluster tile. Each CTA of the cluster computes its own blocks of 128 rows.
template <class Config, MmaKind Kind>
__global__ void __launch_bounds__(Config::config.threads(), 1)
    blackwell_gemm(const __grid_constant__ BlackwellArguments arguments)
{
    constexpr BlackwellConfig config = Config::config;
    using Storage = BlackwellStorage<Config>;
    static_assert(sizeof(Storage) <= blackwell_shared_limit);
    extern __shared__ __align__(1024) std::byte shared_memory[];
    Storage& storage = *reinterpret_cast<Storage*>(shared_memory);

    // Broadcast from lane 0, so that the compiler knows it is uniform.
    const std::uint32_t warp = of_first_lane(threadIdx.x / 32);
    const ClusterGrid cluster(config.cluster, 1);
    if (threadIdx.x == 0) {
        if (arguments.k_steps > 0 && !config.copies) {
            prefetch(arguments.a.map);
            prefetch(arguments.b.map);
        }
        if (arguments.stores_by_tma) {
            prefetch(arguments.d);
        }
    }
    detail::clear_unloaded_rows<Config>(arguments, storage);
    const BlackwellPublished<Config> published = [&] {
        const auto initialize = [&](const BarrierInitializer& by) { detail::initialize_barriers<Config>(by, storage); };
        if constexpr (Config::config.cluster > 1) {
            return publish_barriers_to_cluster(initialize);
        } else {
            return publish_barriers(initialize);
        }
    }();

    Tmem<Unallocated, config.tensor_memory_columns(), config.group> unallocated(storage.tensor_memory);
    auto tensor_memory = [&] {
        if constexpr (Config::config.group == CtaGroup::pair) {
            return std::move(unallocated).allocate(warp == detail::mma_warp, published);
        } else {
            return std::move(unallocated).allocate(warp == detail::mma_warp);
        }
    }();
    // A role reads or writes global memory only when earlier grids of the stream have finished.
    const auto await_kernels_before = [] { cudaGridDependencySynchronize(); };

    const OutputPartition<config.cluster_m(), config.block_n> partition(arguments.gemm.raster);
    const bool multiplies = issues_for_group<Config>(cluster);

    const bool is_second_epilogue = config.epilogue_groups == 2 && warp >= detail::second_epilogue_warp;
    if (warp < epilogue_warps || is_second_epilogue) {
        await_kernels_before();
        const std::uint32_t lanes = warp % epilogue_warps;  // of tensor memory, in 32
        const std::uint32_t group = is_second_epilogue ? 1 : 0;
        const std::uint32_t own = group * epilogue_warps + lanes;
        BlackwellEpilogue<Config> epilogue(arguments, storage.staging[own], storage.c_loaded[own], published, lanes);
        auto accumulators =
            read_accumulators<config.accumulator_columns()>(storage.accumulators, published, tensor_memory);
        accumulators.skip(group);
        BlackwellQueue<Config> queue(arguments, storage, published);
        for (WorkPart work = queue.first(); work; work = queue.next_of_warp()) {
            const auto tile = partition.tile(work.item);
            const bool is_part = config.shares_tiles() && work.steps < arguments.k_steps;
#pragma unroll 1
            for (std::uint32_t m_tile = group; m_tile < config.m_tiles; m_tile += config.epilogue_groups) {
                const auto rows = tile.template part<128, config.block_n>(block_of<Config>(m_tile, cluster.row()), 0)
                                      .template part<32, config.block_n>(lanes, 0);
                BlackwellSharedTile<Config> shared;
                if (is_part) {
                    const std::uint32_t block = cluster.row() * config.m_tiles + m_tile;
                    shared = {arguments, work.item.index(), block * epilogue_warps + lanes};
                }
                if (!is_part) {
                    epilogue.announce(rows);
                }
                epilogue.store(rows, accumulators.wait(), shared);
                accumulators.skip(config.epilogue_groups - 1);
            }
        }
        epilogue.drain();
    } else if (warp == detail::load_warp) {
        StageLoader<Config> loader(arguments, storage, published, cluster);
        BlackwellQueue<Config> queue(arguments, storage, published);
        // The second CTA of a pair takes part in the ring only if it loads something. Otherwise nothing waits on its
        // stages, and they would come round without it.
        const bool fills = multiplies || !by_threads<Config>(arguments.a) || !by_threads<Config>(arguments.b);
        if constexpr (config.roles == Roles::specialized) {
            RingProducer<TileBegun> tile_begun(storage.tile_begun, published);
            WorkPart work = queue.first();
            if (work && fills) {
                loader.begin(partition.tile(work.item), work.first_step);
                loader.prefetch_stages(min(arguments.prefetched_stages, work.steps));
            }
            await_kernels_before();
            for (; work; work = queue.next_of_warp()) {
                if (config.scheduling == Scheduling::launch_control && cluster.row() == 0 && !arguments.stream_k) {
                    tile_begun.acquire().publish_written();
                }
                loader.begin(partition.tile(work.item), work.first_step);
#pragma unroll 1
                for (std::uint32_t k = 0; k < (fills ? work.steps : 0); ++k) {
                    loader.step();
                }
                loader.prefetch_c();
            }
        } else {
            StageMultiplier<Config, Kind, decltype(tensor_memory)> multiplier(arguments, storage, published, cluster,
                                                                              tensor_memory);
            await_kernels_before();
            loader.begin(partition.tile(queue.first().item), 0);
            std::uint32_t loaded = 0;
            multiplier.multiply(arguments.k_steps, [&](std::uint32_t k) {
                // One stage stays with the tensor core, so that loading ahead does not wait for it.
                constexpr std::uint32_t ahead = Config::config.stages > 1 ? Config::config.stages - 1 : 1;
                while (loaded < min(k + ahead, arguments.k_steps)) {
                    loader.step();
                    ++loaded;
                }
            });
        }
        cudaTriggerProgrammaticLaunchCompletion();  // lets the next grid launch while this one finishes
        if (fills) {
            loader.drain();
        }
    } else if (warp == detail::mma_warp) {
        if (config.roles == Roles::specialized && multiplies) {
            StageMultiplier<Config, Kind, decltype(tensor_memory)> multiplier(arguments, storage, published, cluster,
                                                                              tensor_memory);
            BlackwellQueue<Config> queue(arguments, storage, published);
            for (WorkPart work = queue.first(); work; work = queue.next_of_warp()) {
                multiplier.multiply(work.steps, [](std::uint32_t) {});
            }
        }
    } else if (warp == detail::scheduler_warp) {
        if constexpr (config.scheduling == Scheduling::launch_control) {
            if (cluster.row() == 0 && !arguments.stream_k) {
                ClcRequester<config.cluster, clc_slots> requester(storage.clc, published);
                BlackwellQueue<Config> queue(arguments, storage, published);
                RingConsumer<TileBegun> tile_begun(storage.tile_begun, published);
                // No earlier: a cluster that starts before others would claim tiles that they could begin with.
                do {
                    tile_begun.wait().release_of_warp();
                    requester.request();
                } while (queue.next_of_warp());
            }
        }
    } else if (warp >= detail::first_copy_warp) {
        if constexpr (config.copies) {
            await_kernels_before();
            constexpr int element_bytes = Kind == MmaKind::f16 ? 2 : Kind == MmaKind::tf32 ? 4 : 1;
            StageCopier<Config, element_bytes> copier(arguments, storage, published, cluster,
                                                      threadIdx.x - 32 * detail::first_copy_warp);
            BlackwellQueue<Config> queue(arguments, storage, published);
            for (WorkPart work = queue.first(); work; work = queue.next_of_warp()) {
                copier.copy(partition.tile(work.item));
            }
            copier.drain();
        }
    }
    __syncwarp();

    // No CTA leaves while another may still arrive at its barriers, load into its stages or use its tensor memory.
    if constexpr (config.group == CtaGroup::pair) {
        const PairFinished finished = tensor_memory.finish_pair();
        std::move(tensor_memory).release(warp == detail::mma_warp, finished);
    } else {
        if constexpr (config.cluster > 1) {
            ClusterGrid::synchronize();
        }
        std::move(tensor_memory).release(warp == detail::mma_warp);
    }
}

}  // namespace tessera::kernels
