#pragma once

/// The main loop whose stages TMA loads: for compute capability 9.0 and later, and operands that TMA can address.
///
/// The first warp asks for stages, all warps multiply. A warp frees a stage when it has read it, and only the first one
/// waits for the others, a step later: no barrier of the CTA is in the loop.

#include <cstddef>
#include <cstdint>

#include "mma_arguments.hpp"
#include "mma_config.hpp"
#include "mma_warp.cuh"
#include "tessera/device/tma.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

struct MmaBarriers {
    BarrierWord<FilledByTma> full[mma_most_stages];
    BarrierWord<FreedByThreads> empty[mma_most_stages];
};
static_assert(sizeof(MmaBarriers) <= mma_barrier_bytes);

namespace detail {

/// An operand that all batches share has one matrix in its map.
__device__ __forceinline__ int batch_of(const Operand& operand, const TilePosition& tile)
{
    return operand.batch_stride == 0 ? 0 : static_cast<int>(tile.batch);
}

/// Where the halves of a tile begin along x: those of B's columns may be gates and their ups.
struct TileHalves {
    int first;
    int second;
};

template <class Tile>
__device__ __forceinline__ TileHalves halves_of(const MmaExtent& x)
{
    const auto first = static_cast<int>(x.first);
    const auto to_second = x.to_up != 0 ? static_cast<int>(x.to_up) : Tile::extent / 2;
    return {.first = first, .second = first + to_second};
}

/// Asks for a tile of an operand: box by box, each as wide as a swizzled line. One thread.
/// @tparam Halves  true if a box has half of a K-major tile. A condition instead would be a branch in every step: 50 cycles
/// @param k  the first of the stage
template <class Tile, bool Halves>
__device__ __forceinline__ void load_tile(const AnyTensorMap<3>& map, std::byte* to,
                                          const Barrier<FilledByTma>& counted, const TileHalves& x, int k, int batch)
{
    if constexpr (Tile::k_major) {
        tma_load(map, to, counted.bytes(), {k, x.first, batch});
        if constexpr (Halves) {
            tma_load(map, to + Tile::size_bytes / 2, counted.bytes(), {k, x.second, batch});
        }
    } else {
        constexpr int in_line = Tile::line_bytes / Tile::element_bytes;
        // The host launches nothing whose halves are in one block.
        constexpr int of_half = Tile::blocks == 1 ? 1 : Tile::blocks / 2;
#pragma unroll
        for (int block = 0; block < Tile::blocks; ++block) {
            const int first = (block < of_half ? x.first : x.second) + block % of_half * in_line;
            tma_load(map, to + block * Tile::block_bytes, counted.bytes(), {first, k, batch});
        }
    }
}

}  // namespace detail

/// Loads and multiplies the steps of a CTA. Every thread calls it.
/// @param shared  the ring, and behind it the barriers
/// @param before_loads  called before the first load by all threads
template <class Config, class Warp, class BeforeLoads>
__device__ __forceinline__ void multiply_from_tma(Warp& products, const MmaArguments& arguments,
                                                  const TilePosition& tile, const MmaSteps& steps, std::byte* shared,
                                                  BeforeLoads&& before_loads, typename Warp::Accumulators& accumulators)
{
    constexpr MmaConfig config = Config::config;
    const auto stages = static_cast<int>(arguments.stages);
    auto& barriers = *reinterpret_cast<MmaBarriers*>(shared + stages * config.stage_bytes());
    if (threadIdx.x == 0) {
        tessera::detail::prefetch_tensor_map(&arguments.a_map);
        tessera::detail::prefetch_tensor_map(&arguments.b_map);
    }
    const auto published = publish_barriers([&](const BarrierInitializer& by) {
        for (int i = 0; i < stages; ++i) {
            by.initialize(barriers.full[i], 1);
            by.initialize(barriers.empty[i], config.threads() / 32);
        }
    });
    const bool is_loader = __shfl_sync(~0U, threadIdx.x / 32, 0) == 0;
    const detail::TileHalves of_a =
        detail::halves_of<typename Warp::TileA>(mma_extent_of_a<Config>(arguments.gemm, tile));
    const detail::TileHalves of_b =
        detail::halves_of<typename Warp::TileB>(mma_extent_of_b<Config>(arguments.gemm, tile));
    const auto load = [&](int step, int stage) {
        const Barrier full(barriers.full[stage], published);
        full.arrive_and_expect(config.stage_bytes());
        std::byte* const to = shared + stage * config.stage_bytes();
        const auto k = static_cast<int>((steps.first + step) * std::uint32_t{Warp::TileA::block_k});
        detail::load_tile<typename Warp::TileA, false>(arguments.a_map, to, full, of_a, k,
                                                       detail::batch_of(arguments.gemm.a, tile));
        detail::load_tile<typename Warp::TileB, true>(arguments.b_map, to + Warp::TileA::size_bytes, full, of_b, k,
                                                      detail::batch_of(arguments.gemm.b, tile));
    };

    before_loads();
    if (is_loader && elect_one()) {
#pragma unroll 1
        for (int i = 0; i < min(stages, steps.count); ++i) {
            load(i, i);
        }
    }
    __syncwarp();

    typename Warp::StageSums of_stage{};
    auto& sums = Warp::sums_of(of_stage, accumulators);
    const std::uint32_t ring = tessera::detail::shared_address(shared);
    int stage = 0;
    PhaseParity parity = PhaseParity::even;
    int read_before = 0;
    PhaseParity parity_before = PhaseParity::even;
    Barrier(barriers.full[0], published).wait(parity);
    products.read(ring, 0);
#pragma unroll 1
    for (int i = 0; i < steps.count; ++i) {
        const std::uint32_t from = ring + stage * config.stage_bytes();
        const int refilled = i - 1 + stages;
        if (is_loader && i > 0 && refilled < steps.count) {
            Barrier(barriers.empty[read_before], published).wait(parity_before);
            if (elect_one()) {
                load(refilled, read_before);
            }
            __syncwarp();
        }
        read_before = stage;
        parity_before = parity;
#pragma unroll
        for (int step = 0; step < Warp::steps; ++step) {
            if (step + 1 < Warp::steps) {
                products.read(from, step + 1);
            } else {
                __syncwarp();
                if (elect_one()) {
                    Barrier(barriers.empty[stage], published).arrive();
                }
                if (i + 1 < steps.count) {  // after the last one, what is read again is not used
                    ++stage;
                    if (stage == stages) {
                        stage = 0;
                        parity = parity == PhaseParity::even ? PhaseParity::odd : PhaseParity::even;
                    }
                }
                Barrier(barriers.full[stage], published).wait(parity);
                products.read(ring + stage * config.stage_bytes(), 0);
            }
            products.multiply(sums, step);
        }
        Warp::end_stage(of_stage, accumulators, arguments.two_level || i + 1 == steps.count);
    }
}

}  // namespace tessera::kernels
