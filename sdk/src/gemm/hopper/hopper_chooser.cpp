#include "gemm/hopper/hopper_chooser.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "gemm/gemm_operands.hpp"
#include "gemm/hopper/hopper_cycles.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/hopper/hopper_measured.hpp"
#include "gemm/hopper/hopper_repack.hpp"
#include "gemm/workspace.hpp"

namespace tessera::detail {
namespace {

using kernels::HopperKernel;

KernelChoice cheapest(const GemmProblem& problem, const DeviceProperties& device, std::size_t workspace_limit)
{
    KernelChoice best{};
    double least = std::numeric_limits<double>::infinity();
    const bool is_limited = workspace_limit != std::numeric_limits<std::size_t>::max();
    const MeasuredChoice* const measured = find_measured(problem, device);
    for (const KernelChoice& choice : hopper_candidates(problem, device)) {
        if (is_limited && workspace_bytes(hopper_workspace(problem, choice)) > workspace_limit) {
            continue;
        }
        if (measured != nullptr && is_measured(*measured, choice)) {
            return choice;
        }
        const double cost = expected_hopper_cycles(problem, device, choice);
        if (cost < least) {  // in a tie the first: the model does not include the raster
            best = choice;
            least = cost;
        }
    }
    return best;
}

/// The inputs of `cheapest`.
struct Key {
    HopperShape shape;
    InputTypes input;
    ElementType output;
    Fp8Accumulation accumulation;
    bool d_row_major;
    bool has_c;
    BiasAxis bias;
    Activation activation;
    bool has_pre_activation;
    Gating gating;
    bool row_scales;
    bool column_scales;
    bool a_straddles;
    bool b_straddles;
    std::size_t repacked_bytes;
    bool may_repack;
    int sm_count;
    std::size_t l2_cache_bytes;
    std::size_t workspace_limit;

    friend bool operator==(const Key&, const Key&) = default;
};

std::size_t slot_of(const Key& key, std::size_t slots)
{
    std::uint64_t hash = 0;
    for (const std::int64_t value : {key.shape.m, key.shape.n, key.shape.k, key.shape.batches}) {
        hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15U;  // 2^64 / golden ratio
    }
    return (hash >> 32) % slots;
}

}  // namespace

KernelChoice choose_hopper(const GemmProblem& problem, const DeviceProperties& device, std::size_t workspace_limit)
{
    // The model looks at hundreds of choices, a launch at one. Each thread remembers its latest choices.
    struct Entry {
        Key key{};
        KernelChoice choice{};
    };
    thread_local std::array<Entry, 64> remembered{};
    const Key key{hopper_shape(problem, false),
                  problem.input,
                  problem.output,
                  problem.fp8_accumulation,
                  problem.d.row_major,
                  problem.has_c,
                  problem.bias,
                  problem.activation,
                  problem.has_pre_activation,
                  problem.gating,
                  problem.row_scales,
                  problem.column_scales,
                  straddles_sectors(problem.a, problem.input.a),
                  straddles_sectors(problem.b, problem.input.b),
                  repacked_bytes(problem),
                  may_repack(problem, device),
                  device.sm_count,
                  device.l2_cache_bytes,
                  workspace_limit};
    Entry& entry = remembered[slot_of(key, remembered.size())];
    if (entry.choice.variant != Variant::hopper || entry.key != key) {
        entry = {key, cheapest(problem, device, workspace_limit)};
    }
    return entry.choice;
}

std::string describe_hopper(const GemmProblem& problem, const KernelChoice& choice)
{
    const HopperKernel& kernel = kernels::hopper_kernels(size_of(problem.input))[choice.config];
    const HopperShape given = hopper_shape(problem, is_transposed(problem));  // A and B as the user has them
    const bool repacks = !kernel.copies;
    return fmt::format("{}{}, {} clusters of {}x{}x{} CTAs, raster groups of {} tiles{}{}", kernel.name,
                       choice.swapped ? " of the transposed product" : "", choice.clusters, choice.cluster_m,
                       choice.cluster_n, choice.cluster_k, choice.band, choice.stream_k ? ", stream-K" : "",
                       repacks && given.a_by_threads && given.b_by_threads ? ", A and B repacked first"
                       : repacks && given.a_by_threads                     ? ", A repacked first"
                       : repacks && given.b_by_threads                     ? ", B repacked first"
                                                                           : "");
}

}  // namespace tessera::detail
