#pragma once

/// @file
/// @ingroup tile_programs
/// @brief The kernel that runs a tile program. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tessera/device/barrier.cuh"
#include "tessera/device/warp.cuh"
#include "tessera/tile/cta.cuh"
#include "tessera/tile/exchange.cuh"
#include "tessera/tile/plan.hpp"
#include "tessera/tile/tcgen05_stages.cuh"
#include "tessera/tile/tensor_memory.cuh"

namespace tessera::tile::detail {

/// A program's hints, or the default ones.
template <class Program>
constexpr Hints hints_of()
{
    if constexpr (requires { Program::hints; }) {
        static_assert(
            requires { typename std::integral_constant<int, Program::hints.stages>; },
            "tessera: a program's hints are static constexpr tile::Hints hints");
        return Program::hints;
    } else {
        return {};
    }
}
template <class Program>
inline constexpr Hints program_hints = hints_of<Program>();

/// A kernel has code for a device if its limit of threads is that of its CTAs there: elsewhere its body is empty.
inline constexpr int threads_of_empty_kernel = 32;

/// True if the code that is compiled can have the instructions. The host sees all kernels.
template <Instructions With>
TESSERA_DETAIL_HOST_DEVICE constexpr bool target_has()
{
#ifdef __CUDA_ARCH__
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr bool wgmma = true;
#else
    constexpr bool wgmma = false;
#endif
#ifdef __CUDA_ARCH_FAMILY_SPECIFIC__
    constexpr int family = __CUDA_ARCH_FAMILY_SPECIFIC__ / 100;
#else
    constexpr int family = 0;
#endif
    return With == Instructions::mma_sync || (With == Instructions::wgmma && wgmma) ||
           (With == Instructions::tcgen05 && (family == 10 || family == 11));
#else
    return true;
#endif
}

template <Instructions With, class Program>
constexpr int threads_of_kernel()
{
    constexpr int threads = Machine<With, Role::all, program_hints<Program>>::all_threads;
    return target_has<With>() ? threads : threads_of_empty_kernel;
}

/// True if stages of a program on mma.sync are filled by TMA: where there is nothing better.
TESSERA_DETAIL_HOST_DEVICE constexpr bool target_fills_by_tma()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 1200
    return false;
#else
    return true;
#endif
}
template <class Program>
constexpr int threads_of_kernel_by_tma()
{
    constexpr int threads = Machine<Instructions::mma_sync, Role::all, program_hints<Program>>::all_threads;
    return target_fills_by_tma() ? threads : threads_of_empty_kernel;
}

/// Waits until the grid before this one has ended, and its writes are visible. CUDA's own function is missing at run time.
/// Source: PTX ISA, "griddepcontrol".
__device__ __forceinline__ void wait_for_previous_grid() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
/// Lets the next grid of the stream begin.
__device__ __forceinline__ void let_next_grid_begin() { asm volatile("griddepcontrol.launch_dependents;" :::); }

/// What plans a program: threads without tiles.
template <Instructions With, class Program>
using PlanningCta = Cta<Machine<With, Role::plan, program_hints<Program>>>;

/// Plans a program: for both kinds of instructions, as exchanges need other scratch memory.
template <class Program>
TESSERA_TILE void plan_program(const Program& program)
{
    RingState for_mma_sync;
    program(PlanningCta<Instructions::mma_sync, Program>(for_mma_sync));
    RingState for_wgmma;
    program(PlanningCta<Instructions::wgmma, Program>(for_wgmma));
}

/// Plans a program for tcgen05.
template <class Program>
TESSERA_TILE void plan_program_for_tcgen05(const Program& program)
{
    Tcgen05State<CtaGroup::one> state;
    state.slots = 32;  // as many as it asks for
    program(PlanningCta<Instructions::tcgen05, Program>(state));
}

/// Runs a program. `program`, `memory` and `groups` are the kernel's parameters.
/// @tparam Ctas   of a cluster that loads together, on wgmma
/// @param groups  the order of its places
template <Instructions With, int Ctas = 1, class Program>
__device__ __forceinline__ void run_program(const Program& program, const SharedMemory& memory,
                                            [[maybe_unused]] const TileRaster* groups = nullptr)
{
    constexpr Hints hints = program_hints<Program>;
    RingState ring;
    ring.shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile_shared_memory)) + memory.ring;
    ring.held = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile_shared_memory)) + memory.held;
    ring.stage_bytes = memory.stage_bytes;
    ring.stages = memory.stages;
    if constexpr (With == Instructions::mma_sync) {
        program(Cta<Machine<With, Role::all, hints>>(ring));
    } else {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        using Loading = Machine<With, Role::load, hints, Ctas>;
        using Computing = Machine<With, Role::compute, hints, Ctas>;
        constexpr int threads = Computing::threads;
        ring.barriers =
            reinterpret_cast<TileBarriers*>(tile_shared_memory + memory.ring + memory.stages * memory.stage_bytes);
        ring.groups = groups;
        const auto initialize = [&](const BarrierInitializer& by) {
#pragma unroll 1
            for (int i = 0; i < memory.stages; ++i) {
                by.initialize(ring.barriers->full[i], ctas_that_fill<Loading>);
                by.initialize(ring.barriers->empty[i], ctas_that_fill<Computing> * threads / 32);
            }
#pragma unroll 1
            for (int i = 0; i < most_held; ++i) {
                by.initialize(ring.barriers->held_full[i], 1);
                by.initialize(ring.barriers->held_empty[i], threads / 32);
            }
        };
        const auto published = [&] {
            if constexpr (Ctas > 1) {
                return publish_barriers_to_cluster(initialize);
            } else {
                return publish_barriers(initialize);
            }
        }();
        ring.published = &published;
        if constexpr (Ctas > 1) {
            ring.published_to_cluster = &published;
        }
        wait_for_previous_grid();  // the launch lets this kernel begin before the one before it has ended
        let_next_grid_begin();
        const int of_warp = of_first_lane(warp());
        ring.warpgroup = of_warp / 4;  // asked for in a loop, it would be exchanged between lanes at each step
        if (of_warp == threads / 32) {
            program(Cta<Loading>(ring));
        } else {
            program(Cta<Computing>(ring));
        }
        if constexpr (Ctas > 1) {
            __syncwarp();
            ClusterGrid::await_peers();  // they free slots of this CTA until they have ended, too
        }
#endif
    }
}

/// Runs a program on mma.sync whose stages TMA fills.
template <class Program>
__device__ __forceinline__ void run_program_by_tma(const Program& program, const SharedMemory& memory)
{
    const auto shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile_shared_memory));
    RingState ring;
    ring.shared = shared + memory.ring;
    ring.held = shared + memory.held;
    ring.stage_bytes = memory.stage_bytes;
    ring.stages = memory.stages;
    ring.barriers =
        reinterpret_cast<TileBarriers*>(tile_shared_memory + memory.ring + memory.stages * memory.stage_bytes);
    const BarriersPublished published = publish_barriers([&](const BarrierInitializer& by) {
#pragma unroll 1
        for (int i = 0; i < memory.stages; ++i) {
            by.initialize(ring.barriers->full[i], 1);
        }
#pragma unroll 1
        for (int i = 0; i < most_held; ++i) {
            by.initialize(ring.barriers->held_full[i], 1);
        }
    });
    ring.published = &published;
    program(Cta<Machine<Instructions::mma_sync, Role::all, program_hints<Program>, 1, true>>(ring));
}

/// Initializes the barriers of a CTA whose sums are in tensor memory.
/// @param arrivals         that fill a stage, besides bytes
/// @param readers          of a stage: the pairs of a cluster, or 1
/// @param computing_warps  of the CTA, or of both CTAs of a pair
__device__ __forceinline__ void initialize_barriers(const BarrierInitializer& by, Tcgen05Barriers& words, int stages,
                                                    std::uint32_t arrivals, std::uint32_t readers,
                                                    std::uint32_t computing_warps)
{
#pragma unroll 1
    for (int i = 0; i < stages; ++i) {
        by.initialize(words.full[i], arrivals);
        by.initialize(words.empty[i], readers);
    }
#pragma unroll 1
    for (int i = 0; i < most_held; ++i) {
        by.initialize(words.held_full[i], 1);
        by.initialize(words.held_empty[i], 1);
    }
#pragma unroll 1
    for (int i = 0; i < most_slots; ++i) {
        by.initialize(words.complete[i], 1);
        by.initialize(words.free[i], computing_warps);
        by.initialize(words.written[i], computing_warps);
    }
}

/// Runs a program on tcgen05. The first warps compute, the next one loads, the last one multiplies: in a pair, that of the first CTA
/// for both.
/// @tparam Ctas  of a cluster: 1, or those of as many pairs
template <int Ctas, class Program>
__device__ __forceinline__ void run_program_on_tcgen05(const Program& program, const SharedMemory& memory,
                                                       const TensorMemory& tensor_memory)
{
    constexpr Hints hints = program_hints<Program>;
    using Loading = Machine<Instructions::tcgen05, Role::load, hints, Ctas>;
    using Multiplying = Machine<Instructions::tcgen05, Role::multiply, hints, Ctas>;
    using Computing = Machine<Instructions::tcgen05, Role::compute, hints, Ctas>;
    constexpr CtaGroup group = group_of<Computing>;
    constexpr int loading_warp = Computing::threads / 32;
    const auto shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile_shared_memory));
    Tcgen05State<group> state;
    state.shared = shared + memory.ring;
    state.held = shared + memory.held;
    state.stage_bytes = memory.stage_bytes;
    state.stages = memory.stages;
    state.groups = &tensor_memory.groups;
    state.slot_columns = tensor_memory.slot_columns;
    state.slots = tensor_memory.slots;
    state.words =
        reinterpret_cast<Tcgen05Barriers*>(tile_shared_memory + memory.ring + memory.stages * memory.stage_bytes);
    const int of_warp = of_first_lane(warp());
    const bool allocates = of_warp == loading_warp + 1;
    const auto published = [&] {
        const auto initialize = [&](const BarrierInitializer& by) {
            constexpr int multiplying = Computing::multiplying_ctas;
            initialize_barriers(by, *state.words, memory.stages, arrivals_to_fill<Computing>, Ctas / multiplying,
                                multiplying * Computing::threads / 32);
        };
        if constexpr (Ctas > 1) {
            return publish_barriers_to_cluster(initialize);
        } else {
            return publish_barriers(initialize);
        }
    }();
    Tmem<Unallocated, tensor_memory_columns, group> unallocated(state.words->tensor_memory);
    auto allocated = [&] {
        if constexpr (Ctas > 1) {
            return std::move(unallocated).allocate(allocates, published);
        } else {
            return std::move(unallocated).allocate(allocates);
        }
    }();
    state.visible = &published;
    state.memory = &allocated;
    wait_for_previous_grid();  // the launch lets this kernel begin before the one before it has ended
    let_next_grid_begin();
    if (of_warp < loading_warp) {
        program(Cta<Computing>(state));
        await_pending<Computing>(state);
    } else if (of_warp == loading_warp) {
        program(Cta<Loading>(state));
        drain<Loading>(state);
    } else if (counts<Multiplying>()) {
        program(Cta<Multiplying>(state));
    }
    __syncwarp();
    if constexpr (Ctas > 1) {
        const PairFinished finished = allocated.finish_pair();
        std::move(allocated).release(allocates, finished);
    } else {
        std::move(allocated).release(allocates);
    }
}

/// CTAs of the clusters of pairs that a program's hints want on tcgen05; 0 if they want none with several pairs.
template <class Program>
constexpr int ctas_of_pairs()
{
    constexpr Hints hints = program_hints<Program>;
    return hints.pairs && hints.cluster > 2 && hints.cluster / hints.cluster_columns >= 2 ? hints.cluster : 0;
}

/// Runs a program on tcgen05 in a cluster of pairs, if its hints want one.
template <class Program>
TESSERA_TILE void run_program_in_pairs(const Program& program, const SharedMemory& memory,
                                       const TensorMemory& tensor_memory)
{
    if constexpr (ctas_of_pairs<Program>() > 0) {
        run_program_on_tcgen05<ctas_of_pairs<Program>()>(program, memory, tensor_memory);
    }
}

/// The kernel of a program that is compiled ahead of time.
template <Instructions With, class Program>
__global__ void __launch_bounds__(threads_of_kernel<With, Program>())
    tile_kernel(const __grid_constant__ Program program, const SharedMemory memory)
{
    run_program<With>(program, memory);
}

/// Runs a program on wgmma in a cluster of CTAs that loads together, if its hints want one.
template <class Program>
TESSERA_TILE void run_program_in_clusters(const Program& program, const SharedMemory& memory, const TileRaster& groups)
{
    if constexpr (program_hints<Program>.cluster > 1) {
        run_program<Instructions::wgmma, program_hints<Program>.cluster>(program, memory, &groups);
    }
}

/// The same for a cluster of CTAs that loads together.
template <class Program>
__global__ void __launch_bounds__(threads_of_kernel<Instructions::wgmma, Program>())
    tile_kernel_in_clusters(const __grid_constant__ Program program, const SharedMemory memory,
                            const __grid_constant__ TileRaster groups)
{
    run_program_in_clusters(program, memory, groups);
}

/// The same for mma.sync where TMA fills the stages.
template <class Program>
__global__ void __launch_bounds__(threads_of_kernel_by_tma<Program>())
    tile_kernel_by_tma(const __grid_constant__ Program program, const SharedMemory memory)
{
    if constexpr (target_fills_by_tma()) {
        run_program_by_tma(program, memory);
    }
}

/// The same for tcgen05.
/// @tparam Ctas  of a cluster: 1, or those of as many pairs
template <int Ctas, class Program>
__global__ void __launch_bounds__(threads_of_kernel<Instructions::tcgen05, Program>(), 1)
    tile_kernel_on_tcgen05(const __grid_constant__ Program program, const SharedMemory memory,
                           const __grid_constant__ TensorMemory tensor_memory)
{
    if constexpr (target_has<Instructions::tcgen05>()) {
        run_program_on_tcgen05<Ctas>(program, memory, tensor_memory);
    }
}

}  // namespace tessera::tile::detail
