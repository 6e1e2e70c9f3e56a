#include "gemm/blackwell/blackwell_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gemm/blackwell/blackwell_launch.hpp"
#include "gemm/workspace.hpp"

namespace tessera::detail {
namespace {

using kernels::BlackwellConfig;

// Published, or given by the architecture:
constexpr double bytes_per_cycle_from_l2 = 64;          // per SM: the width of a port to L2
constexpr double shared_memory_bytes_per_cycle = 128;   // per SM
constexpr double memory_bytes_per_cycle = 4200;         // device memory, all SMs together: 8 TB/s at 1.9 GHz
constexpr double memory_bytes_per_cycle_of_thor = 170;  // 273 GB/s at 1.6 GHz
constexpr double start_cycles = 2000;                   // from the first load to the first product, cold
// Of the machine code and of Hopper's measured latency; docs/notes/blackwell-kernel.md.
constexpr double latency_cycles = 2500;           // of the ring, from a free stage to the next
constexpr double chunk_cycles = 120;              // of the epilogue, per 16 columns of a warp's 32 rows
constexpr double general_chunk_cycles = 500;      // the same without TMA
constexpr double sharing_cycles = 2000;           // of stream-K: counters, and the workspace's first access
constexpr double shared_chunk_cycles = 400;       // 16 columns of a warp's sums to the workspace, or from there
constexpr double sm_memory_bytes_per_cycle = 40;  // of device memory, one SM
constexpr double unhidden_share = 0.1;            // of the shorter of memory time and work, which overlap

double divide_up(double value, double by) { return std::ceil(value / by); }

/// The work of the busiest cluster.
struct Load {
    double clusters = 0;  // that run at the same time
    double stages = 0;    // of K
    double tiles = 0;     // whole or in part
};

Load load_of(const BlackwellConfig& config, const GemmProblem& problem, const DeviceProperties& device,
             const KernelChoice& choice, const BlackwellShape& shape)
{
    const auto units = static_cast<double>(blackwell_units(config, shape));
    const auto stages = static_cast<double>(blackwell_stages(problem));
    const auto slots = static_cast<double>(blackwell_cluster_slots(device, config.cluster));
    if (choice.stream_k) {
        const double clusters = choice.clusters;
        const double waves = divide_up(clusters, slots);
        return {.clusters = std::min(clusters, slots),
                .stages = waves * divide_up(units * stages, clusters),
                .tiles = waves * std::max(1.0, units / clusters)};
    }
    const double waves = divide_up(units, slots);
    return {.clusters = std::min(units, slots), .stages = waves * stages, .tiles = waves};
}

/// Returns the expected time in cycles. Only the order of the results matters.
double expected_cycles(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice)
{
    const BlackwellConfig& config = *kernels::blackwell_kernels(size_of(problem.input))[choice.config].config;
    const BlackwellShape shape = blackwell_shape(problem, choice.swapped);
    const Load load = load_of(config, problem, device, choice, shape);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    const auto batches = static_cast<double>(shape.batches);
    const double columns = config.block_n;

    // Four instructions per stage and block: each needs N / 2 cycles (a pair's has twice the rows), for every type, or
    // the time to read both operands from shared memory.
    const double read = (128 + columns / config.group_size()) * 32 / shared_memory_bytes_per_cycle;
    const double products = 4 * config.m_tiles * std::max(columns / 2, read);
    const bool trims = config.group == CtaGroup::one;  // rows beyond the operand
    const double a_bytes = config.m_tiles * 128.0 * (trims ? std::min(128.0, m) : 128.0);
    const double b_rows = trims ? std::min<double>(config.b_rows(), n) : config.b_rows();
    const double b_bytes = 128.0 * b_rows / config.b_sharers();
    const double step =
        std::max({products, (a_bytes + b_bytes) / bytes_per_cycle_from_l2, latency_cycles / config.stages});

    // The warps of a CTA store its rows side by side, and one block after the other if they have one warpgroup.
    const bool by_tma = !choice.swapped && !is_float8(problem.output);
    const double chunks = config.m_tiles * divide_up(std::min(columns, n), 16) / config.epilogue_groups;
    const double epilogue = chunks * (by_tma ? chunk_cycles : general_chunk_cycles);
    const bool overlaps = config.accumulators > config.m_tiles;
    const double loop = load.stages * step;
    double work = overlaps ? std::max(loop, load.tiles * epilogue) : loop + load.tiles * epilogue;
    if (choice.stream_k) {
        work += sharing_cycles + 2 * chunks * shared_chunk_cycles;  // one part is written, and one read
    }

    const double row_bytes = batches * k * static_cast<double>(size_of(problem.input));
    const double d_bytes = batches * m * n * static_cast<double>(size_of(problem.output)) * (problem.has_c ? 2 : 1);
    const double of_device =
        device.compute_capability_major == 11 ? memory_bytes_per_cycle_of_thor : memory_bytes_per_cycle;
    const double rate = std::min(of_device, load.clusters * config.cluster * sm_memory_bytes_per_cycle);
    const double memory = ((m + n) * row_bytes + d_bytes) / rate;
    return start_cycles + std::max(work, memory) + unhidden_share * std::min(work, memory) + (overlaps ? epilogue : 0);
}

}  // namespace

KernelChoice choose_blackwell(const GemmProblem& problem, const DeviceProperties& device, std::size_t workspace_limit)
{
    KernelChoice best{};
    double least = std::numeric_limits<double>::infinity();
    for_each_blackwell_candidate(problem, device, [&](const KernelChoice& choice) {
        if (choice.stream_k && workspace_limit != unlimited_workspace &&
            workspace_bytes(blackwell_workspace(problem, choice)) > workspace_limit) {
            return;
        }
        // In a tie the first, which has the smallest tile.
        if (const double cycles = expected_cycles(problem, device, choice); cycles < least) {
            best = choice;
            least = cycles;
        }
    });
    return best;
}

double busy_share_of_blackwell(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice)
{
    const BlackwellConfig& config = *kernels::blackwell_kernels(size_of(problem.input))[choice.config].config;
    const BlackwellShape shape = blackwell_shape(problem, choice.swapped);
    const Load load = load_of(config, problem, device, choice, shape);
    const double all = static_cast<double>(blackwell_units(config, shape)) *
                       static_cast<double>(blackwell_stages(problem)) * config.cluster;
    return all / (load.stages * device.sm_count);
}

std::string describe_blackwell(const GemmProblem& problem, const KernelChoice& choice)
{
    const kernels::BlackwellKernel& kernel = kernels::blackwell_kernels(size_of(problem.input))[choice.config];
    const std::int64_t units = blackwell_units(*kernel.config, blackwell_shape(problem, choice.swapped));
    const std::string shared = choice.stream_k ? fmt::format(", stream-K on {} clusters", choice.clusters) : "";
    return fmt::format("{}{}, {} work tile{} in raster groups of {}{}", kernel.name(),
                       choice.swapped ? " of the transposed product" : "", units, units == 1 ? "" : "s", choice.band,
                       shared);
}

}  // namespace tessera::detail
