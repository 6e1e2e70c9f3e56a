#pragma once

/// The mma.sync kernel: a tile of D per CTA, or with split-K per several CTAs.
///
/// All threads load stages, some ahead of the one that is multiplied, and all warps multiply. One barrier per stage says
/// both that the next stage is there and that the previous one has been read.

#include <cuda_pipeline_primitives.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "mma_arguments.hpp"
#include "mma_config.hpp"
#include "mma_epilogue.cuh"
#include "mma_load.cuh"
#include "mma_tile.cuh"

namespace tessera::kernels {

/// Elements of K in one instruction.
template <class Element>
inline constexpr unsigned mma_k =
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    16 / sizeof(Element);
#else
    32 / sizeof(Element);
#endif

/// A warp's products: the fragments of one step along K are read while those of the step before are multiplied.
template <class Config, class A, class B, Major MajorA, Major MajorB>
class MmaWarp {
    static constexpr MmaConfig config = Config::config;

public:
    static constexpr int rows = config.warp_m() / 16;    // fragments along M
    static constexpr int columns = config.warp_n() / 8;  // along N
    using TileA = MmaTile<A, config.tile_m, MajorA>;
    using TileB = MmaTile<B, config.tile_n, MajorB>;
    using PartA = FragmentA<A, 16, mma_k<A>>;
    using PartB = FragmentB<B, 8, mma_k<B>>;
    using ReaderA = MmaReader<TileA, PartA, config.warp_m(), true>;
    using ReaderB = MmaReader<TileB, PartB, config.warp_n(), false>;
    using Accumulators = FragmentC<float, 16, 8>[rows][columns];
    static constexpr int steps = ReaderA::steps;  // of a stage
    static_assert(steps == ReaderB::steps && steps % 2 == 0);

    __device__ MmaWarp(int warp_m, int warp_n) : a_(warp_m * config.warp_m()), b_(warp_n * config.warp_n()) {}

    /// Reads the fragments of `step` from a stage.
    __device__ __forceinline__ void read(std::uint32_t stage, int step)
    {
#pragma unroll
        for (int i = 0; i < rows; ++i) {
            a_.read(a_words_[step % 2][i], stage, i, step);
        }
#pragma unroll
        for (int j = 0; j < columns / 2; ++j) {
            b_.read(b_words_[step % 2][j], stage + TileA::size_bytes, j, step);
        }
    }

    /// Multiplies the fragments of `step`.
    __device__ __forceinline__ void multiply(Accumulators& accumulators, int step) const
    {
        constexpr int half = PartB::chunks;
#pragma unroll
        for (int i = 0; i < rows; ++i) {
            PartA a;
#pragma unroll
            for (int word = 0; word < ReaderA::words; ++word) {
                a.words[word] = a_words_[step % 2][i][word];
            }
#pragma unroll
            for (int n = 0; n < columns; ++n) {
                const int j = i % 2 == 0 ? n : columns - 1 - n;  // at the turn, an operand is still there
                PartB b;
#pragma unroll
                for (int word = 0; word < half; ++word) {
                    b.words[word] = b_words_[step % 2][j / 2][j % 2 * half + word];
                }
                mma(accumulators[i][j], a, b);
            }
        }
    }

private:
    ReaderA a_;
    ReaderB b_;
    std::uint32_t a_words_[2][rows][ReaderA::words];
    std::uint32_t b_words_[2][columns / 2][ReaderB::words];
};

namespace detail {

/// True if the architecture that is compiled for has the instructions. The host launches no other kernel.
template <class Config, class Element>
inline constexpr bool can_run =
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
    true;
#elif __CUDA_ARCH__ >= 800
    sizeof(Element) != 1;
#else
    std::is_same_v<Element, f16> && Config::config.for_75;
#endif

/// Waits until the previous kernel is done and its results are visible, from 9.0 on: before, no kernel begins early.
__device__ __forceinline__ void wait_for_previous_kernel()
{
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/// Lets the next kernel begin where there is room; it waits itself until this one is done.
__device__ __forceinline__ void let_next_kernel_begin()
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Waits until at most `groups` of the thread's groups of copies are under way.
__device__ __forceinline__ void wait_for_copies(std::uint32_t groups)
{
#if __CUDA_ARCH__ >= 800
    static_assert(mma_most_stages == 5);
    switch (groups) {
        case 0: __pipeline_wait_prior(0); return;
        case 1: __pipeline_wait_prior(1); return;
        case 2: __pipeline_wait_prior(2); return;
        default: __pipeline_wait_prior(3); return;
    }
#endif
}

__device__ __forceinline__ void commit_copies()
{
#if __CUDA_ARCH__ >= 800
    __pipeline_commit();
#endif
}

}  // namespace detail

template <class Config, class A, class B, Major MajorA, Major MajorB>
__global__ void __launch_bounds__(Config::config.threads(), Config::config.min_ctas())
    mma_gemm(const __grid_constant__ MmaArguments arguments)
{
    constexpr MmaConfig config = Config::config;
    if constexpr (detail::can_run<Config, A>) {
        using Warp = MmaWarp<Config, A, B, MajorA, MajorB>;
        constexpr std::int64_t block_k = Warp::TileA::block_k;
        extern __shared__ __align__(128) std::byte shared[];

        const GemmArguments& gemm = arguments.gemm;
        const std::uint32_t splits = arguments.splits;
        const std::uint32_t tile_index = splits == 1 ? blockIdx.x : blockIdx.x / splits;
        const std::uint32_t split = splits == 1 ? 0 : blockIdx.x % splits;
        const TilePosition tile = gemm.raster.position(tile_index);
        // The first parts of K may have a step more. The host has divided.
        const std::uint32_t first_step = split * arguments.steps + min(split, arguments.longer_splits);
        const auto steps = static_cast<int>(arguments.steps + (split < arguments.longer_splits ? 1 : 0));
        const std::int64_t k_begin = first_step * block_k;

        MmaLoader<typename Warp::TileA, A, config.threads(), config.any_alignment> load_a(
            gemm.a, gemm.a.row_stride, gemm.a.column_stride, tile.batch,
            static_cast<std::int64_t>(tile.row) * config.tile_m, gemm.m, k_begin, gemm.k - k_begin);
        MmaLoader<typename Warp::TileB, B, config.threads(), config.any_alignment> load_b(
            gemm.b, gemm.b.column_stride, gemm.b.row_stride, tile.batch,
            static_cast<std::int64_t>(tile.column) * config.tile_n, gemm.n, k_begin, gemm.k - k_begin);

        const auto stages = static_cast<int>(arguments.stages);
        const std::uint32_t first_stage = tessera::detail::shared_address(shared);
        const std::uint32_t ring_end = first_stage + stages * config.stage_bytes();
        const auto finish = [&](std::uint32_t stage) {
            load_a.finish(stage);
            load_b.finish(stage + Warp::TileA::size_bytes);
        };
        const auto next = [&](std::uint32_t stage) {
            const std::uint32_t following = stage + config.stage_bytes();
            return following == ring_end ? first_stage : following;
        };

        detail::wait_for_previous_kernel();
        std::uint32_t loaded = first_stage;
#pragma unroll 1
        for (int i = 0; i + 1 < stages; ++i) {
            load_a.template begin<1>(loaded, 0);
            load_b.template begin<1>(loaded + Warp::TileA::size_bytes, 0);
            detail::commit_copies();
            finish(loaded);
            loaded = next(loaded);
        }

        detail::let_next_kernel_begin();
        const MmaEpilogue<Config> epilogue(arguments, shared);
        epilogue.prefetch_c(tile);

        const int warp = static_cast<int>(threadIdx.x) / 32;
        const int warp_m = warp / config.warps_n;
        const int warp_n = warp % config.warps_n;
        Warp products(warp_m, warp_n);
        typename Warp::Accumulators accumulators{};
        constexpr bool two_level = sizeof(A) == 1;
        typename Warp::Accumulators of_stage{};
        typename Warp::Accumulators& sums = two_level ? of_stage : accumulators;

        if (steps > 0) {
            detail::wait_for_copies(stages - 2);
            __syncthreads();
            std::uint32_t stage = first_stage;
            products.read(stage, 0);
#pragma unroll 1
            for (int left = steps; left > 0; --left) {
#pragma unroll
                for (int step = 0; step < Warp::steps; ++step) {
                    if (step + 1 < Warp::steps) {
                        products.read(stage, step + 1);  // first: the compiler moves no read before a copy
                        // To the stage that all have read before the last barrier. After the last one, zeros are written to a
                        // stage that nobody reads: cheaper than a branch, which would keep apart what the compiler can mix.
                        load_a.template begin<Warp::steps - 1>(loaded, step);
                        load_b.template begin<Warp::steps - 1>(loaded + Warp::TileA::size_bytes, step);
                    } else {
                        detail::commit_copies();
                        finish(loaded);
                        loaded = next(loaded);
                        stage = left > 1 ? next(stage) : stage;  // after the last one, what is read is not used
                        detail::wait_for_copies(stages - 2);
                        __syncthreads();
                        products.read(stage, 0);
                    }
                    products.multiply(sums, step);
                }
                if constexpr (two_level) {
                    if (arguments.two_level || left == 1) {
#pragma unroll
                        for (int i = 0; i < Warp::rows; ++i) {
#pragma unroll
                            for (int j = 0; j < Warp::columns; ++j) {
#pragma unroll
                                for (int value = 0; value < 4; ++value) {
                                    accumulators[i][j][value] += of_stage[i][j][value];
                                    of_stage[i][j][value] = 0;
                                }
                            }
                        }
                    }
                }
            }
        }

        detail::wait_for_copies(0);  // of the zeros, before other data take their place
        if (splits > 1 && !epilogue.add_parts(accumulators, tile_index, split)) {
            return;
        }
        epilogue.store(accumulators, tile, warp_m, warp_n);
    }
}

}  // namespace tessera::kernels
