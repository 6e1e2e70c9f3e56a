#pragma once

/// @file
/// @ingroup tile_programs
/// @brief `tile::launch`: runs a tile program on a stream.

#include "tessera/detail/language.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
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

/// Makes a plan for tcgen05 while it exists.
class PlanningForTcgen05 {
public:
    template <class Program>
    explicit PlanningForTcgen05(const Program& program) noexcept : planning_{{}, &program, sizeof program}
    {
        tcgen05_planning() = &planning_;
    }
    ~PlanningForTcgen05() { tcgen05_planning() = nullptr; }
    PlanningForTcgen05(const PlanningForTcgen05&) = delete;
    PlanningForTcgen05& operator=(const PlanningForTcgen05&) = delete;
    const Tcgen05Plan& plan() const noexcept { return planning_.plan; }

private:
    Tcgen05Planning planning_;
};

template <class Program>
Plan plan_of(const Program& program)
{
    const Planning planning;
    plan_program(program);
    return planning.plan();
}
/// Plans a program for tcgen05.
template <class Program>
PlanWithTensorMemory tcgen05_plan_of(const Program& program)
{
    const Planning planning;
    const PlanningForTcgen05 planning_for_tcgen05(program);
    plan_program_for_tcgen05(program);
    return {planning.plan(), planning_for_tcgen05.plan()};
}

/// Returns a program as pairs run it.
/// @throws Error  as `encode_maps_of_pair`
template <class Program>
Program with_maps_of_pair(Program program, const Tcgen05Plan& plan, const std::source_location& caller)
{
    encode_maps_of_pair(plan, reinterpret_cast<std::byte*>(&program), caller);
    return program;
}

template <Instructions With, class Program, class... Parameters>
Candidate candidate(void (*kernel)(Parameters...))
{
    return {reinterpret_cast<const void*>(kernel), threads_of_kernel<With, Program>()};
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
/// @return  on which instructions the program runs, and why on no better ones. It may be ignored
/// @throws Error  `shape_mismatch` if bands of one stream have other lengths, or partitions of one program other numbers of tiles;
///                `device_mismatch` if a matrix is on another device than the stream; `launch_refused` if shared memory is too small
///                for two steps of a stream; `unsupported_device` if the program has no code for the device
template <class Program>
LaunchReport launch(StreamRef stream, const Program& program,
                    std::source_location caller = std::source_location::current())
{
    static_assert(std::is_trivially_copyable_v<Program>,
                  "tessera: a tile program is copied to the GPU: its members are inputs, outputs and plain values");
    static_assert(std::is_invocable_v<const Program&, detail::PlanningCta<Instructions::mma_sync, Program>>,
                  "tessera: a tile program has TESSERA_TILE void operator()(auto cta) const");
    constexpr auto mma_sync = Instructions::mma_sync;
    constexpr auto wgmma = Instructions::wgmma;
    constexpr auto tcgen05 = Instructions::tcgen05;
    const auto kernel_mma_sync = detail::tile_kernel<mma_sync, Program>;
    const auto kernel_by_tma = detail::tile_kernel_by_tma<Program>;
    const auto kernel_wgmma = detail::tile_kernel<wgmma, Program>;
    const auto kernel_tcgen05 = detail::tile_kernel_on_tcgen05<1, Program>;
    const auto kernel_pairs = detail::tile_kernel_on_tcgen05<2, Program>;
    constexpr bool wants_clusters = detail::program_hints<Program>.cluster > 1;
    detail::Candidates candidates{
        .mma_sync = detail::candidate<mma_sync, Program>(kernel_mma_sync),
        .mma_sync_by_tma = detail::candidate<mma_sync, Program>(kernel_by_tma),
        .wgmma = detail::candidate<wgmma, Program>(kernel_wgmma),
        .tcgen05 = detail::candidate<tcgen05, Program>(kernel_tcgen05),
        .pairs = detail::candidate<tcgen05, Program>(kernel_pairs),
    };
    if constexpr (wants_clusters) {
        candidates.clusters = detail::candidate<wgmma, Program>(detail::tile_kernel_in_clusters<Program>);
    }
    constexpr int ctas_of_pairs = detail::ctas_of_pairs<Program>();
    if constexpr (ctas_of_pairs > 0) {
        candidates.clusters_of_pairs =
            detail::candidate<tcgen05, Program>(detail::tile_kernel_on_tcgen05<ctas_of_pairs, Program>);
    }
    const detail::Plan plan = detail::plan_of(program);
    const detail::PlanWithTensorMemory tcgen05_plan =
        detail::has_tensor_memory(stream, caller) ? detail::tcgen05_plan_of(program) : detail::PlanWithTensorMemory{};
    const detail::Choice choice =
        detail::choose(plan, tcgen05_plan, stream, candidates, detail::program_hints<Program>, caller);
    const LaunchReport& report = choice.report;
    if (report.ctas == 0) {
        return report;
    }
    const auto launch_program = [&](const detail::Candidate& candidate, auto kernel, const Program& launched,
                                    const auto&... parameters) {
        LaunchConfig config(stream, {report.ctas}, {static_cast<unsigned>(candidate.threads)}, caller);
        config.shared_memory_bytes(report.shared_memory_bytes);
        if (report.cluster > 1) {
            config.cluster({static_cast<unsigned>(report.cluster)});
        }
        if (report.instructions != mma_sync) {
            config.programmatic_dependent_launch();
        }
        tessera::launch(kernel, config, launched, choice.memory, parameters...);
    };
    const auto launch_kernel = [&](const detail::Candidate& candidate, auto kernel, const auto&... parameters) {
        launch_program(candidate, kernel, program, parameters...);
    };
    if (report.instructions == mma_sync && report.by_tma) {
        launch_kernel(candidates.mma_sync_by_tma, kernel_by_tma);
    } else if (report.instructions == mma_sync) {
        launch_kernel(candidates.mma_sync, kernel_mma_sync);
    } else if (report.instructions == wgmma) {
        if constexpr (wants_clusters) {
            if (report.cluster > 1) {
                launch_kernel(candidates.clusters, detail::tile_kernel_in_clusters<Program>, choice.groups);
                return report;
            }
        }
        launch_kernel(candidates.wgmma, kernel_wgmma);
    } else if (report.pairs) {
        const Program of_pairs = detail::with_maps_of_pair(program, tcgen05_plan.tcgen05, caller);
        if constexpr (ctas_of_pairs > 0) {
            if (report.cluster > 2) {
                launch_program(candidates.clusters_of_pairs, detail::tile_kernel_on_tcgen05<ctas_of_pairs, Program>,
                               of_pairs, choice.tensor_memory);
                return report;
            }
        }
        launch_program(candidates.pairs, kernel_pairs, of_pairs, choice.tensor_memory);
    } else {
        launch_kernel(candidates.tcgen05, kernel_tcgen05, choice.tensor_memory);
    }
    return report;
}

}  // namespace tessera::tile
