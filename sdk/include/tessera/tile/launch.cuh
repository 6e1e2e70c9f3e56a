#pragma once

/// @file
/// @ingroup tile_programs
/// @brief `tile::launch`: runs a tile program on a stream.

#include "tessera/detail/language.hpp"

#include <cuda_runtime_api.h>

#include <source_location>
#include <type_traits>

#include "tessera/launch.hpp"
#include "tessera/stream.hpp"
#include "tessera/tile/choice.hpp"
#include "tessera/tile/kernel.cuh"

namespace tessera::tile {

namespace detail {

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
    plan_program(program);
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
    static_assert(std::is_invocable_v<const Program&, detail::PlanningCta<Instructions::mma_sync, Program>>,
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
