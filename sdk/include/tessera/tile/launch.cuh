#pragma once

/// @file
/// @ingroup tile_programs
/// @brief `tile::launch`: runs a tile program on a stream.

#include "tessera/detail/language.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "tessera/device.hpp"
#include "tessera/device/barrier.cuh"
#include "tessera/launch.hpp"
#include "tessera/stream.hpp"
#include "tessera/tile/cta.cuh"
#include "tessera/tile/exchange.cuh"
#include "tessera/tile/plan.hpp"

namespace tessera::tile {

namespace detail {

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

/// What the host calls a program with.
template <class Program>
using PlanningCta = Cta<Machine<Instructions::mma_sync, Role::plan, program_hints<Program>>>;

/// Runs a program.
template <Instructions With, class Program>
__global__ void __launch_bounds__(threads_of_kernel<With, Program>())
    tile_kernel(const __grid_constant__ Program program, const SharedMemory memory)
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
        cudaGridDependencySynchronize();  // the launch lets this kernel begin before the one before it has ended
        cudaTriggerProgrammaticLaunchCompletion();
        if (of_first_lane(warp()) == threads / 32) {
            program(Cta<Machine<With, Role::load, hints>>(ring));
        } else {
            program(Cta<Machine<With, Role::compute, hints>>(ring));
        }
#endif
    }
}

/// Makes a plan while it exists.
class Planning {
public:
    Planning() noexcept { planning() = &plan_; }
    ~Planning() { planning() = nullptr; }
    Planning(const Planning&) = delete;
    Planning& operator=(const Planning&) = delete;
    const Plan& plan() const noexcept { return plan_; }

private:
    Plan plan_;
};

template <class Program>
Plan plan_of(const Program& program)
{
    const Planning planning;
    RingState ring;
    program(PlanningCta<Program>(ring));
    return planning.plan();
}

}  // namespace detail

/// Runs a tile program. The grid follows from the partition of its output.
///
/// A program is a struct of inputs, outputs and values, with `TESSERA_TILE void operator()(auto cta) const`. The host calls it, too,
/// to learn what it needs; it computes nothing then.
///
/// @code{.cpp}
/// tile::launch(stream, TileGemm<bf16, 128, 128, 64>{a, b, d});
/// @endcode
///
/// @par Synchronization
/// Asynchronous, and ordered after all earlier work on the stream. All memory must stay alive until then. Can be captured into a
/// graph.
///
/// @throws Error  `shape_mismatch` if bands of one stream have other lengths, or partitions of one program other numbers of tiles;
///                `device_mismatch` if a matrix is on another device than the stream; `launch_refused` if shared memory is too small
///                for two steps of a stream; `unsupported_device` if the program has no code for the device
template <class Program>
void launch(StreamRef stream, const Program& program, std::source_location caller = std::source_location::current())
{
    static_assert(std::is_trivially_copyable_v<Program>,
                  "tessera: a tile program is copied to the GPU: its members are inputs, outputs and plain values");
    static_assert(std::is_invocable_v<const Program&, detail::PlanningCta<Program>>,
                  "tessera: a tile program has TESSERA_TILE void operator()(auto cta) const");
    constexpr auto mma_sync = Instructions::mma_sync;
    constexpr auto wgmma = Instructions::wgmma;
    const auto kernel_mma_sync = detail::tile_kernel<mma_sync, Program>;
    const auto kernel_wgmma = detail::tile_kernel<wgmma, Program>;
    constexpr int threads_mma_sync = detail::threads_of_kernel<mma_sync, Program>();
    constexpr int threads_wgmma = detail::threads_of_kernel<wgmma, Program>();
    const detail::Plan plan = detail::plan_of(program);
    const detail::Choice choice = detail::choose(
        plan, stream, {reinterpret_cast<const void*>(kernel_mma_sync), threads_mma_sync},
        {reinterpret_cast<const void*>(kernel_wgmma), threads_wgmma}, detail::program_hints<Program>.stages, caller);
    if (choice.grid == 0) {
        return;
    }
    const bool by_wgmma = choice.instructions == wgmma;
    LaunchConfig config(stream, {choice.grid}, {static_cast<unsigned>(by_wgmma ? threads_wgmma : threads_mma_sync)},
                        caller);
    config.shared_memory_bytes(choice.memory.bytes);
    if (by_wgmma) {
        config.programmatic_dependent_launch();
    }
    tessera::launch(by_wgmma ? kernel_wgmma : kernel_mma_sync, config, program, choice.memory);
}

}  // namespace tessera::tile
