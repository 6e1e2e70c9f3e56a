#pragma once

/// @file
/// @ingroup tile_programs
/// @brief The kernel that runs a tile program. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <cstdint>
#include <type_traits>

#include "tessera/device/barrier.cuh"
#include "tessera/device/warp.cuh"
#include "tessera/tile/cta.cuh"
#include "tessera/tile/exchange.cuh"
#include "tessera/tile/plan.hpp"

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

template <Instructions With, class Program>
constexpr int threads_of_kernel()
{
    constexpr int threads = Machine<With, Role::all, program_hints<Program>>::all_threads;
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
    return With == Instructions::wgmma ? threads_of_empty_kernel : threads;
#else
    return threads;
#endif
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

/// Runs a program. `program` and `memory` are the kernel's parameters.
template <Instructions With, class Program>
__device__ __forceinline__ void run_program(const Program& program, const SharedMemory& memory)
{
    constexpr Hints hints = program_hints<Program>;
    RingState ring;
    ring.shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile_shared_memory)) + memory.ring;
    ring.held = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile_shared_memory)) + memory.held;
    ring.stage_bytes = memory.stage_bytes;
    ring.stages = memory.stages;
    ring.has_loads = memory.loads_in_ring;
    if constexpr (With == Instructions::mma_sync) {
        program(Cta<Machine<With, Role::all, hints>>(ring));
    } else {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        constexpr int threads = Machine<With, Role::all, hints>::threads;
        ring.barriers =
            reinterpret_cast<TileBarriers*>(tile_shared_memory + memory.ring + memory.stages * memory.stage_bytes);
        const BarriersPublished published = publish_barriers([&](const BarrierInitializer& by) {
#pragma unroll 1
            for (int i = 0; i < memory.stages; ++i) {
                by.initialize(ring.barriers->full[i], 1);
                by.initialize(ring.barriers->empty[i], threads / 32);
            }
#pragma unroll 1
            for (int i = 0; i < most_held; ++i) {
                by.initialize(ring.barriers->held_full[i], 1);
                by.initialize(ring.barriers->held_empty[i], threads / 32);
            }
        });
        ring.published = &published;
        wait_for_previous_grid();  // the launch lets this kernel begin before the one before it has ended
        let_next_grid_begin();
        if (of_first_lane(warp()) == threads / 32) {
            program(Cta<Machine<With, Role::load, hints>>(ring));
        } else {
            program(Cta<Machine<With, Role::compute, hints>>(ring));
        }
#endif
    }
}

/// The kernel of a program that is compiled ahead of time.
template <Instructions With, class Program>
__global__ void __launch_bounds__(threads_of_kernel<With, Program>())
    tile_kernel(const __grid_constant__ Program program, const SharedMemory memory)
{
    run_program<With>(program, memory);
}

}  // namespace tessera::tile::detail
