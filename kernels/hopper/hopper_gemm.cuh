#pragma once

/// The Hopper GEMM kernel: D = epilogue(A * B) with wgmma and TMA, persistent and warp-specialized.
///
/// Reads A and B through tensor maps, or by the fallback load; writes D by TMA stores or directly. Partial sums of
/// shared tiles go through distributed shared memory and the workspace.
///
///   warpgroup 0     load: warp 0 issues TMA (all four warps copy in configurations with the fallback load);
///                   warp 1 announces shared tiles
///   warpgroups 1-2  consumers: wgmma on the stages of the ring, then the epilogue
///
/// hopper_config.hpp has the configurations, hopper_arguments.hpp what is chosen at run time.

#include <cstdint>
#include <type_traits>
#include <utility>

#include "hopper_arguments.hpp"
#include "hopper_copy.cuh"
#include "hopper_epilogue.cuh"
#include "hopper_load.cuh"
#include "hopper_multiply.cuh"
#include "hopper_reduce.cuh"
#include "hopper_shared.cuh"
#include "hopper_shared_tile.cuh"
#include "hopper_work.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

namespace detail {

inline constexpr int first_turn_barrier = 4;  // after those of the CTA, of each consumer and of all

template <int ElementBytes>
using StorageElement =
    std::conditional_t<ElementBytes == 1, std::uint8_t, std::conditional_t<ElementBytes == 2, std::uint16_t, float>>;

/// Ping-pong: the consumers take turns at the ring. If one ran ahead of the other by more than one round of the ring,
/// it would mistake the parity of an old phase for its own. So all slots of a tile are filled when its consumer passes the
/// turn, also those of C.
__device__ __forceinline__ void await_turn(int consumer)
{
    NamedBarrier<256>(static_cast<std::uint32_t>(first_turn_barrier + consumer)).synchronize();
}
__device__ __forceinline__ void pass_turn(int consumer)
{
    NamedBarrier<256>(static_cast<std::uint32_t>(first_turn_barrier + consumer)).arrive();
}

/// Intra-CTA split-K: both consumers meet here.
__device__ __forceinline__ void await_other_consumer() { NamedBarrier<256>(first_turn_barrier).synchronize(); }

/// Clears the rows of the stages that are never loaded, because the tensor core reads them, too. Executed by all
/// consumers, while the first loads are in flight.
template <class Config>
__device__ __forceinline__ void clear_rows_not_loaded(const HopperArguments& arguments, HopperShared<Config>& shared)
{
    constexpr HopperConfig config = Config::config;
    constexpr int row_bytes = HopperConfig::hopper_row_bytes;
    constexpr int threads = config.consumers * 128;
    const auto a_rows = static_cast<int>(arguments.a_rows);
    const auto b_rows = static_cast<int>(arguments.b_rows);
    if (a_rows == config.tile_m && b_rows == config.tile_n) {
        return;
    }
    const auto clear = [](std::byte* begin, const std::byte* end) {
        for (std::byte* chunk = begin + (threadIdx.x - 128) * sizeof(float4); chunk < end;
             chunk += threads * sizeof(float4)) {
            *reinterpret_cast<float4*>(chunk) = float4{};
        }
    };
#pragma unroll 1
    for (auto& stage : shared.stages) {
        clear(stage.a + a_rows * row_bytes, stage.b);
        clear(stage.b + b_rows * row_bytes, stage.b + config.tile_n * row_bytes);
    }
    make_visible_to_tma();
    synchronize_consumers<Config>();
}

/// The consumer role. Inlined, like everything that holds accumulators: the compiler serializes wgmma around calls.
template <class Config, int ElementBytes>
__device__ __forceinline__ void consume(const HopperArguments& arguments, HopperShared<Config>& shared_memory,
                                        HopperQueue queue, const ClusterGrid& cluster, int consumer,
                                        BarriersPublishedToCluster published)
{
    constexpr HopperConfig config = Config::config;
    constexpr bool ping_pong = config.schedule == HopperSchedule::ping_pong;
    constexpr bool alternating = config.schedule == HopperSchedule::alternating;
    HopperShared<Config>& shared = config.looks_ahead() ? with_known_address(shared_memory) : shared_memory;
    const int consumer_row = config.schedule == HopperSchedule::cooperative ? consumer * config.consumer_m() : 0;
    clear_rows_not_loaded<Config>(arguments, shared);
    const HopperReleaser releaser(cluster, published);
    await_kernel_before();  // free here: there is no data to work on yet
    HopperEpilogue<Config> epilogue(arguments, shared, consumer);
    const HopperReduction<Config> reduction(arguments, shared, consumer);
    RingConsumer<HopperRing<Config>> ring(shared.ring, published);
    HopperUnit unit{};
    bool more = queue.next(unit);  // outside of the loop's condition, where nvcc would spill
    for (int turn = 0; more; ++turn, more = queue.next(unit)) {
        if (ping_pong && turn % config.consumers != consumer) {
            ring.skip(unit.k_count + unit.c_slots);
            continue;
        }
        // Before the MMA loop, where it overlaps the loads; after it, it would delay a small product.
        const TilePosition place = arguments.gemm.raster.position(unit.tile);
        const auto row = static_cast<int>((place.row * cluster.rows() + cluster.row()) * config.tile_m + consumer_row);
        const auto column = static_cast<int>((place.column * cluster.columns() + cluster.column()) * config.tile_n);
        const bool is_whole = !config.shares_tiles() || (cluster.layers() == 1 && !unit.shared);
        // Here, where the wait for the turn and the MMA loop hide the latency of the loads.
        const auto bias = epilogue.load_bias(is_whole, row, column);
        epilogue.prefetch_scales(row, column);
        epilogue.prefetch_c(is_whole, row, column, static_cast<int>(place.batch));
        if (ping_pong && turn > 0) {
            await_turn(consumer);
        }
        float accumulators[config.consumer_m() / 64][config.tile_n / 2];
        if constexpr (alternating) {
            ring.skip(consumer);
        }
        multiply_unit<Config, ElementBytes>(arguments, accumulators, ring, shared, releaser, consumer_row, unit.k_count,
                                            [&] {
                                                if (ping_pong && queue.has_next()) {
                                                    // The other consumer passes over the slots of C unseen.
                                                    ring.await_next(config.carries_c() ? unit.c_slots : 0);
                                                    pass_turn(1 - consumer);
                                                }
                                                if (is_whole) {
                                                    epilogue.put_bias(bias);
                                                }
                                            });
        if constexpr (alternating) {
            ring.skip(1 - consumer);
            if (turn > 0) {
                await_other_consumer();  // the previous sums have been read
            }
            if (consumer == 1) {
                reduction.put_sums(accumulators);
            }
            await_other_consumer();
            if (consumer == 1) {
                continue;
            }
            reduction.add_sums(accumulators);
        }
        if (is_whole) {
            auto c = ring.wait_for(config.carries_c() ? unit.c_slots : 0);
            epilogue.template write<ElementBytes>(
                accumulators, std::move(c), releaser,
                {.first_row = consumer_row, .row = row, .column = column, .batch = static_cast<int>(place.batch)});
        } else {
            reduction.combine(accumulators, queue, unit, !queue.has_next(), cluster, consumer_row, row, column,
                              place.batch);
        }
    }
    epilogue.finish();
}

}  // namespace detail

/// The grid is a number of clusters in x, each a ClusterGrid of (cluster_m, cluster_n, any) CTAs. If the CTAs of a
/// cluster split K (more than one layer), the grid has one cluster per work tile.
template <class Config, int ElementBytes>
__global__ void __launch_bounds__(Config::config.threads(), Config::config.ctas)
    hopper_gemm(const __grid_constant__ HopperArguments arguments)
{
    constexpr HopperConfig config = Config::config;
    extern __shared__ __align__(1024) std::byte dynamic_shared[];
    static_assert(sizeof(HopperShared<Config>) <= config.shared_bytes());
    auto& shared = *reinterpret_cast<HopperShared<Config>*>(dynamic_shared);

    const ClusterGrid cluster(arguments.cluster_m, arguments.cluster_n);
    // Broadcast, so that the compiler knows it is uniform: wgmma must not be in a branch that might diverge.
    const int warpgroup = of_first_lane(static_cast<int>(threadIdx.x) / 128);

    using Element = detail::StorageElement<ElementBytes>;
    using Loader = std::conditional_t<config.copies, HopperCopier<Config, Element>, HopperTmaLoader<Config, Element>>;
    auto announced = announce_barriers_to_cluster([&](const BarrierInitializer& by) {
        constexpr std::uint32_t readers = config.schedule == HopperSchedule::cooperative ? config.consumers : 1;
        constexpr std::uint32_t writers = config.copies ? HopperCopier<Config, Element>::warps : 0;
        shared.ring.initialize(by, {.producers = 1 + writers, .consumers = readers * sharers_of_slot(cluster)});
    });
    if (threadIdx.x == 0) {
        Loader::prefetch_maps(arguments);
    }
    const HopperQueue queue(arguments.work, cluster);
    const BarriersPublishedToCluster published = std::move(announced).await();
    if (warpgroup == 0) {
        if constexpr (config.moves_registers()) {
            give_registers_back<config.load_registers>();
        }
        if (threadIdx.x / 32 == 1) {
            if (threadIdx.x == 32) {  // this warp is idle, unless it copies
                HopperSharedTile<Config>::announce(arguments, queue, cluster);
            }
            __syncwarp();
        }
        if (config.copies || threadIdx.x < 32) {
            Loader::run(arguments, shared, queue, cluster, published);
        }
        if (cluster.layers() > 1) {
            __syncwarp();
            ClusterGrid::synchronize();  // pairs with the one in HopperEpilogue::combine
        }
    } else {
        if constexpr (config.moves_registers()) {
            take_registers<config.consumer_registers()>();
        }
        detail::consume<Config, ElementBytes>(arguments, shared, queue, cluster, warpgroup - 1, published);
    }
    // A CTA must outlive its peers' accesses to it. Its loader stays until all slots are free, which needs their
    // arrivals.
    if (cluster.layers() > 1) {
        __syncwarp();
        ClusterGrid::await_peers();  // and until they have read its partial sums
    }
}

}  // namespace tessera::kernels
