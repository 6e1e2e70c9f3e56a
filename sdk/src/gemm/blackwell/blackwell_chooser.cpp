#include "gemm/blackwell/blackwell_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gemm/blackwell/blackwell_launch.hpp"

namespace tessera::detail {
namespace {

using kernels::BlackwellConfig;

// Published, or given by the architecture:
constexpr double bytes_per_cycle_from_l2 = 64;         // per SM: the width of a port to L2
constexpr double shared_memory_bytes_per_cycle = 128;  // per SM
constexpr double memory_bytes_per_cycle = 4200;        // device memory, all SMs together: 8 TB/s at 1.9 GHz
constexpr double start_cycles = 2000;                  // from the first load to the first product, cold
// Of the machine code and of Hopper's measured latency; docs/notes/blackwell-kernel.md.
constexpr double latency_cycles = 2500;       // of the ring, from a free stage to the next
constexpr double chunk_cycles = 250;          // of the epilogue, per 16 columns of a warp's 32 rows
constexpr double general_chunk_cycles = 500;  // the same without TMA
constexpr double unhidden_share = 0.1;        // of the shorter of memory time and work, which overlap

struct Estimate {
    double units = 0;
    double cycles = 0;
};

double divide_up(double value, double by) { return std::ceil(value / by); }

Estimate estimate(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice)
{
    const BlackwellConfig& config = *kernels::blackwell_kernels(size_of(problem.input))[choice.config].config;
    const BlackwellShape shape = blackwell_shape(problem, choice.swapped);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    const auto batches = static_cast<double>(shape.batches);
    const double rows = config.cluster_m();
    const double columns = config.block_n;
    Estimate result;
    result.units = divide_up(m, rows) * divide_up(n, columns) * batches;

    // Four instructions per stage and block: each needs N / 2 cycles (a pair's has twice the rows), for every type, or
    // the time to read both operands from shared memory.
    const double read = (128 + columns / config.group_size()) * 32 / shared_memory_bytes_per_cycle;
    const double products = 4 * config.m_tiles * std::max(columns / 2, read);
    const bool trims = config.group == CtaGroup::one;  // rows beyond the operand
    const double a_bytes = config.m_tiles * 128.0 * (trims ? std::min(128.0, m) : 128.0);
    const double b_rows = trims ? std::min<double>(config.b_rows(), n) : config.b_rows();
    const double b_bytes = 128.0 * b_rows / (config.multicast ? config.cluster : 1);
    const double step =
        std::max({products, (a_bytes + b_bytes) / bytes_per_cycle_from_l2, latency_cycles / config.stages});
    const double loop = divide_up(k, 128.0 / static_cast<double>(size_of(problem.input))) * step;

    // The warps of a CTA store its rows side by side, and one block after the other.
    const bool by_tma = !choice.swapped && !is_float8(problem.output);
    const double chunk = by_tma ? chunk_cycles : general_chunk_cycles;
    const double epilogue = config.m_tiles * divide_up(std::min(columns, n), 16) * chunk;
    const bool overlaps = config.accumulators > config.m_tiles;
    const double tile = overlaps ? std::max(loop, epilogue) : loop + epilogue;
    const double slots = std::floor(static_cast<double>(device.sm_count) / config.cluster);
    const double waves = divide_up(result.units, slots);

    const double row_bytes = batches * k * static_cast<double>(size_of(problem.input));
    const double d_bytes = batches * m * n * static_cast<double>(size_of(problem.output)) * (problem.has_c ? 2 : 1);
    const double memory = ((m + n) * row_bytes + d_bytes) / memory_bytes_per_cycle;
    const double work = waves * tile;
    result.cycles =
        start_cycles + std::max(work, memory) + unhidden_share * std::min(work, memory) + (overlaps ? epilogue : 0);
    return result;
}

}  // namespace

KernelChoice choose_blackwell(const GemmProblem& problem, const DeviceProperties& device)
{
    KernelChoice best{};
    double least = std::numeric_limits<double>::infinity();
    for_each_blackwell_candidate(problem, device, [&](const KernelChoice& choice) {
        // In a tie the first, which has the smallest tile.
        if (const double cycles = expected_blackwell_cycles(problem, device, choice); cycles < least) {
            best = choice;
            least = cycles;
        }
    });
    return best;
}

double expected_blackwell_cycles(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice)
{
    return estimate(problem, device, choice).cycles;
}

std::string describe_blackwell(const GemmProblem& problem, const KernelChoice& choice)
{
    const kernels::BlackwellKernel& kernel = kernels::blackwell_kernels(size_of(problem.input))[choice.config];
    const std::int64_t units = blackwell_units(*kernel.config, blackwell_shape(problem, choice.swapped));
    return fmt::format("{}{}, {} work tile{} in raster groups of {}", kernel.name(),
                       choice.swapped ? " of the transposed product" : "", units, units == 1 ? "" : "s", choice.band);
}

}  // namespace tessera::detail
