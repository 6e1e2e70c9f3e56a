#pragma once

/// The mma.sync kernel: a CTA has a tile of D, or a part of one along K. With split-K all tiles are divided, with stream-K the
/// last ones, which fill no wave.
///
/// Stages of both operands pass through a ring in shared memory, from which all warps multiply: see mma_copied.cuh and
/// mma_tma.cuh for the two ways in which they are loaded.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "mma_arguments.hpp"
#include "mma_config.hpp"
#include "mma_copied.cuh"
#include "mma_epilogue.cuh"
#include "mma_ptx.cuh"
#include "mma_tma.cuh"
#include "mma_warp.cuh"

namespace tessera::kernels {

namespace detail {

/// True if the architecture that is compiled for has the instructions. The host launches no other kernel.
template <class Config, class Element>
inline constexpr bool can_run =
#if !defined(__CUDA_ARCH__)
    true;
#elif __CUDA_ARCH__ >= 890
    Config::config.for_80;
#elif __CUDA_ARCH__ >= 800
    Config::config.for_80 && sizeof(Element) != 1;
#else
    Config::config.for_75 && std::is_same_v<Element, f16>;
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

/// For a kernel of one order, or of all orders of 16-bit elements, which all have the same.
template <class Config, class A, class B, Major MajorA = Major::k, Major MajorB = Major::k>
inline constexpr int gates_in_turn = mma_gates_in_turn<Config, typename MmaWarp<Config, A, B, MajorA, MajorB>::TileB>;

/// Multiplies the steps of a CTA, whose fragments are those of `Warp`.
template <class Config, class Warp>
__device__ __forceinline__ void multiply(const MmaArguments& arguments, const TilePosition& tile, const MmaSteps& steps,
                                         std::byte* shared, int warp_m, int warp_n,
                                         typename Warp::Accumulators& accumulators)
{
    Warp products(warp_m, warp_n);
    if (steps.count == 0) {
        wait_for_previous_kernel();
    } else if constexpr (mma_loads_by_tma<Config>) {
        multiply_from_tma<Config>(
            products, arguments, tile, steps, shared,
            [] {
                wait_for_previous_kernel();
                let_next_kernel_begin();
            },
            accumulators);
    } else {
        wait_for_previous_kernel();
        let_next_kernel_begin();
        multiply_copied<Config>(products, arguments, tile, steps, shared, accumulators);
    }
}

}  // namespace detail

/// @tparam Majors  of A and B, or nothing: then there is a loop for each order, before an epilogue that they share, which is most of
/// the code
template <class Config, class A, class B, Major... Majors>
__global__ void __launch_bounds__(Config::config.threads(), Config::config.min_ctas())
    mma_gemm(const __grid_constant__ MmaArguments arguments)
{
    constexpr MmaConfig config = Config::config;
    if constexpr (detail::can_run<Config, A>) {
        using KMajor = MmaWarp<Config, A, B, Major::k, Major::k>;
        extern __shared__ __align__(mma_shared_alignment) std::byte shared[];

        const MmaWork work(arguments, blockIdx.x);
        const TilePosition tile = arguments.gemm.raster.position(work.tile);
        const MmaSteps steps = work.steps(arguments);

        const MmaEpilogue<Config, detail::gates_in_turn<Config, A, B, Majors...>> epilogue(arguments, shared);
        const int warp = static_cast<int>(threadIdx.x) / 32;
        const int warp_m = warp / config.warps_n;
        const int warp_n = warp % config.warps_n;
        typename KMajor::Accumulators accumulators{};
        if constexpr (sizeof...(Majors) == 2) {
            detail::multiply<Config, MmaWarp<Config, A, B, Majors...>>(arguments, tile, steps, shared, warp_m, warp_n,
                                                                       accumulators);
        } else if (arguments.a_k_major) {
            if (arguments.b_k_major) {
                detail::multiply<Config, KMajor>(arguments, tile, steps, shared, warp_m, warp_n, accumulators);
            } else {
                detail::multiply<Config, MmaWarp<Config, A, B, Major::k, Major::mn>>(arguments, tile, steps, shared,
                                                                                     warp_m, warp_n, accumulators);
            }
        } else if (arguments.b_k_major) {
            detail::multiply<Config, MmaWarp<Config, A, B, Major::mn, Major::k>>(arguments, tile, steps, shared, warp_m,
                                                                                 warp_n, accumulators);
        } else {
            detail::multiply<Config, MmaWarp<Config, A, B, Major::mn, Major::mn>>(arguments, tile, steps, shared,
                                                                                  warp_m, warp_n, accumulators);
        }

        if (arguments.parts > 1) {
            // Computed again: the products need the registers.
            const MmaWork multiplied(arguments, ptx::read_block_index());
            if (multiplied.parts > 1 && !epilogue.add_parts(accumulators, multiplied)) {
                return;
            }
        }
        epilogue.store(accumulators, tile, warp_m, warp_n);
    }
}

}  // namespace tessera::kernels
