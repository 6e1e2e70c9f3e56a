#include "hopper_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "hopper_launch.hpp"

namespace tessera::detail {
namespace {

using kernels::HopperKernel;

// Cycles are of the multiprocessor's clock. Read off one H200 with bf16 (docs/plan-chooser.md):
constexpr double launch_cycles = 6000;             // start, first stage, drain: whatever the tile
constexpr double ingest_bytes_per_cycle = 48;      // that a multiprocessor takes in when all do
constexpr double epilogue_outputs_per_cycle = 12;  // of a multiprocessor, by TMA
constexpr double layers_cycles = 5500;             // two synchronizations of a cluster, code that is cold
// Fitted to how one run of the tuner there ranked the candidates:
constexpr double l2_bytes_per_cycle = 4200;      // that the second-level cache gives out, multicasts counted once
constexpr double memory_bytes_per_cycle = 2500;  // of device memory
constexpr double general_outputs_per_cycle = 4;  // of a multiprocessor, through the general epilogue
constexpr double wave_cycles = 8000;             // of CTAs that start when others have ended
constexpr double large_cluster_cycles = 2500;    // of four CTAs or more: starting, and multiprocessors that stay idle
constexpr double sharing_cycles = 14000;         // fences, a counter, parts read back
constexpr double shared_floats_per_cycle = 6;    // of a multiprocessor, parts written and read back
constexpr double pair_cycles_per_stage = 8;      // of a cluster of two, which waits for the slower one
constexpr double quad_cycles_per_stage = 80;     // of four, for which some multiprocessors have no room either
constexpr double l2_byte_energy = 0.25;          // large products are bound by power: traffic costs even if it fits

constexpr double divide_up(double value, double by)
{
    return static_cast<double>(static_cast<std::int64_t>((value + by - 1) / by));
}

/// Cycles that one instruction's K takes: the tensor core's, or the time to read both operands from shared memory.
double instruction_cycles(const HopperKernel& kernel)
{
    const double math = kernel.tile_n / 2.0;
    const double reads = (64.0 + kernel.tile_n) * 32 / 128;
    return std::max(math, reads) * (kernel.tile_m / 64.0);
}

/// What the model expects, in cycles. Only the order of the results matters.
double expected_cycles(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice)
{
    const HopperKernel& kernel = kernels::hopper_kernels(size_of(problem.input))[choice.config];
    const HopperShape shape = hopper_shape(problem, choice.swapped);
    const double rows = kernel.tile_m;
    const double columns = kernel.tile_n;
    const double tiles_m = divide_up(static_cast<double>(shape.m), rows * choice.cluster_m);
    const double tiles_n = divide_up(static_cast<double>(shape.n), columns * choice.cluster_n);
    const double tiles = tiles_m * tiles_n * static_cast<double>(shape.batches);
    const double stages = std::max(divide_up(static_cast<double>(shape.k), kernel.block_k), 1.0);
    const double clusters = choice.clusters;
    const double layer_size = choice.cluster_m * choice.cluster_n;
    const double cluster_size = layer_size * choice.cluster_k;
    const double sms = device.sm_count;

    // The busiest multiprocessor: how many CTAs at a time, how many stages and tiles each.
    const double beside = std::min<double>(kernel.ctas, std::max(1.0, divide_up(clusters * cluster_size, sms)));
    double units = divide_up(tiles, clusters);  // of a CTA, one after the other
    double unit_stages = stages;
    if (choice.cluster_k > 1) {
        units = divide_up(clusters * cluster_size, sms * kernel.ctas);
        unit_stages = divide_up(stages * tiles / clusters, choice.cluster_k);
    } else if (choice.stream_k) {
        unit_stages = stages * tiles / clusters / units;
    }
    const double stage_bytes = (rows + columns) * 128;
    double stage_cycles = std::max(4 * instruction_cycles(kernel), stage_bytes / ingest_bytes_per_cycle);
    stage_cycles += layer_size > 2 ? quad_cycles_per_stage : layer_size > 1 ? pair_cycles_per_stage : 0;
    const double loop = units * unit_stages * stage_cycles * beside;

    // What all of them ask of the cache and of memory together.
    const double loaded_per_stage = 128 * (rows / choice.cluster_n + columns / choice.cluster_m);
    const double l2_bytes = tiles * layer_size * stages * loaded_per_stage;
    const auto bytes = static_cast<double>(size_of(problem.input));
    const double least_bytes =
        static_cast<double>(shape.batches) *
        ((static_cast<double>(shape.m) + static_cast<double>(shape.n)) * static_cast<double>(shape.k) * bytes +
         static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(size_of(problem.output)));
    const double traffic = std::max(l2_bytes / l2_bytes_per_cycle, least_bytes / memory_bytes_per_cycle);

    const bool plain =
        !problem.has_c && problem.bias == BiasAxis::none && problem.activation == Activation::none && !choice.swapped;
    const double outputs = rows * columns / (plain ? epilogue_outputs_per_cycle : general_outputs_per_cycle);
    double epilogue = outputs * (kernel.ping_pong ? 1 : units);
    if (choice.cluster_k > 1) {
        epilogue = layers_cycles + outputs / choice.cluster_k + (units - 1) * wave_cycles;
    }
    if (cluster_size > 2) {
        epilogue += large_cluster_cycles * cluster_size * cluster_size / 16;
    }
    if (choice.stream_k) {
        const double sharers = std::max(1.0, clusters / tiles);
        epilogue += sharing_cycles + rows * columns / choice.cluster_k * (1 + sharers) / shared_floats_per_cycle;
    }
    return launch_cycles + std::max(loop, traffic) + epilogue + l2_byte_energy * l2_bytes / l2_bytes_per_cycle;
}

/// The raster whose running clusters cover the most compact part of D.
double raster_extent(const GemmProblem& problem, const KernelChoice& choice)
{
    const HopperKernel& kernel = kernels::hopper_kernels(size_of(problem.input))[choice.config];
    const double high = kernel.tile_m * choice.cluster_m * static_cast<double>(choice.band);
    const double wide = kernel.tile_n * choice.cluster_n * divide_up(choice.clusters, choice.band);
    return high + wide;
}

KernelChoice cheapest(const GemmProblem& problem, const DeviceProperties& device)
{
    KernelChoice best{};
    double least = std::numeric_limits<double>::infinity();
    double best_extent = 0;
    for (const KernelChoice& choice : hopper_candidates(problem, device)) {
        const double cost = expected_cycles(problem, device, choice);
        const double extent = raster_extent(problem, choice);
        if (cost < least || (cost == least && extent < best_extent)) {
            best = choice;
            least = cost;
            best_extent = extent;
        }
    }
    return best;
}

/// What `cheapest` depends on.
struct Key {
    HopperShape shape;
    InputTypes input;
    ElementType output;
    Fp8Accumulation accumulation;
    bool d_row_major;
    bool plain;
    int sm_count;

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

KernelChoice choose_hopper(const GemmProblem& problem, const DeviceProperties& device)
{
    // The model looks at hundreds of choices, a launch at one: each thread remembers what it chose lately.
    struct Entry {
        Key key{};
        KernelChoice choice{};
    };
    thread_local std::array<Entry, 64> remembered{};
    const bool plain = !problem.has_c && problem.bias == BiasAxis::none && problem.activation == Activation::none;
    const Key key{hopper_shape(problem, false), problem.input, problem.output, problem.fp8_accumulation,
                  problem.d.row_major,          plain,         device.sm_count};
    Entry& entry = remembered[slot_of(key, remembered.size())];
    if (entry.choice.variant != Variant::hopper || entry.key != key) {
        entry = {key, cheapest(problem, device)};
    }
    return entry.choice;
}

std::string describe_hopper(const GemmProblem& problem, const KernelChoice& choice)
{
    const HopperKernel& kernel = kernels::hopper_kernels(size_of(problem.input))[choice.config];
    return fmt::format("{}{}, {} clusters of {}x{}x{} CTAs, bands of {} tiles{}", kernel.name,
                       choice.swapped ? " of the transposed product" : "", choice.clusters, choice.cluster_m,
                       choice.cluster_n, choice.cluster_k, choice.band, choice.stream_k ? ", stream-K" : "");
}

}  // namespace tessera::detail
