#pragma once

/// The main loop whose stages all threads load: by cp.async, or on 7.5 through registers.
///
/// One barrier of the CTA per step says both that the next stage is there and that the previous one has been read.

#include <cuda_pipeline_primitives.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "mma_arguments.hpp"
#include "mma_config.hpp"
#include "mma_load.cuh"
#include "mma_warp.cuh"

namespace tessera::kernels {

namespace detail {

/// Waits until at most `Groups` of the thread's groups of copies are under way.
template <int Groups>
__device__ __forceinline__ void wait_for_copies()
{
#if __CUDA_ARCH__ >= 800
    __pipeline_wait_prior(Groups);
#endif
}

__device__ __forceinline__ void commit_copies()
{
#if __CUDA_ARCH__ >= 800
    __pipeline_commit();
#endif
}

/// Evaluated outside of device code, which may not call the function.
template <class Config, bool Larger>
inline constexpr int copied_stages = mma_copied_stages(Config::config, Larger);

/// The main loop with a ring of `Stages` stages.
template <class Config, int Stages, class Warp, class LoaderA, class LoaderB>
__device__ __forceinline__ void multiply_copied(Warp& products, LoaderA& load_a, LoaderB& load_b,
                                                std::uint32_t first_stage, int steps, bool two_level,
                                                typename Warp::Accumulators& accumulators)
{
    constexpr MmaConfig config = Config::config;
    const std::uint32_t ring_end = first_stage + Stages * config.stage_bytes();
    const auto finish = [&](std::uint32_t stage) {
        load_a.finish(stage);
        load_b.finish(stage + Warp::TileA::size_bytes);
    };
    const auto next = [&](std::uint32_t stage) {
        const std::uint32_t following = stage + config.stage_bytes();
        return following == ring_end ? first_stage : following;
    };

    load_a.begin_last(first_stage);
    load_b.begin_last(first_stage + Warp::TileA::size_bytes);
    commit_copies();
    finish(first_stage);
    std::uint32_t loaded = next(first_stage);
#pragma unroll 1
    for (int i = 1; i + 1 < Stages; ++i) {
        load_a.template begin<1>(loaded, 0, i < steps);
        load_b.template begin<1>(loaded + Warp::TileA::size_bytes, 0, i < steps);
        commit_copies();
        finish(loaded);
        loaded = next(loaded);
    }

    typename Warp::StageSums of_stage{};
    auto& sums = Warp::sums_of(of_stage, accumulators);
    wait_for_copies<Stages - 2>();
    __syncthreads();
    std::uint32_t stage = first_stage;
    products.read(stage, 0);
#pragma unroll 1
    for (int left = steps; left > 0; --left) {
        const bool is_left = left >= Stages;  // one to be loaded
#pragma unroll
        for (int step = 0; step < Warp::steps; ++step) {
            if (step + 1 < Warp::steps) {
                products.read(stage, step + 1);  // first: the compiler moves no read before a copy
                constexpr int parts = LoaderA::template parts<Warp::steps - 1>;
                if (step < parts) {  // to the stage that all have read before the last barrier
                    load_a.template begin<parts>(loaded, step, is_left);
                    load_b.template begin<parts>(loaded + Warp::TileA::size_bytes, step, is_left);
                }
            } else {
                commit_copies();
                finish(loaded);
                loaded = next(loaded);
                stage = left > 1 ? next(stage) : stage;  // after the last one, what is read is not used
                wait_for_copies<Stages - 2>();
                __syncthreads();
                products.read(stage, 0);
            }
            products.multiply(sums, step);
        }
        Warp::end_stage(of_stage, accumulators, two_level || left == 1);
    }
    wait_for_copies<0>();  // of the zeros, before other data take their place
}

}  // namespace detail

/// Loads and multiplies the steps of a CTA. Every thread calls it.
template <class Config, class Warp>
__device__ __forceinline__ void multiply_copied(Warp& products, const MmaArguments& arguments, const TilePosition& tile,
                                                const MmaSteps& steps, std::byte* shared,
                                                typename Warp::Accumulators& accumulators)
{
    constexpr MmaConfig config = Config::config;
    const GemmArguments& gemm = arguments.gemm;
    using ElementA = typename Warp::ElementA;
    using ElementB = typename Warp::ElementB;
    MmaLoader<typename Warp::TileA, ElementA, config.threads(), config.any_alignment> load_a(
        gemm.a, gemm.a.row_stride, gemm.a.column_stride, tile.batch, mma_extent_of_a<Config>(gemm, tile), gemm.k,
        steps);
    MmaLoader<typename Warp::TileB, ElementB, config.threads(), config.any_alignment> load_b(
        gemm.b, gemm.b.column_stride, gemm.b.row_stride, tile.batch, mma_extent_of_b<Config>(gemm, tile), gemm.k,
        steps);
    const auto with_stages = [&](auto stages) {
        detail::multiply_copied<Config, stages>(products, load_a, load_b, tessera::detail::shared_address(shared),
                                                steps.count, arguments.two_level, accumulators);
    };
    constexpr int larger = detail::copied_stages<Config, !mma_compiles_for_smaller_shared>;
    constexpr int smaller = detail::copied_stages<Config, false>;
    if constexpr (mma_loads_through_registers) {
        with_stages(std::integral_constant<int, mma_stages_of_75>());
    } else if (larger == smaller || arguments.stages == larger) {
        with_stages(std::integral_constant<int, larger>());
    } else {
        with_stages(std::integral_constant<int, smaller>());
    }
}

}  // namespace tessera::kernels
