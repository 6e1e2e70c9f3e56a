#include "gemm/blackwell/blackwell_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "gemm/blackwell/blackwell_launch.hpp"

namespace tessera::detail {
namespace {

// In order of preference if the model sees no difference. The rungs below `clc` have its tile and one idea less. In
// this model, `cta_pair_512` saves bytes that do not limit `cta_pair_256`, and pays for it with its epilogue.
constexpr std::array candidates{Variant::blackwell_cta_pair_256, Variant::blackwell_cta_pair, Variant::blackwell_clc};

constexpr double bytes_per_cycle_from_l2 = 64;  // per SM: the width of a port to L2
constexpr double bytes_per_cycle_to_l2 = 32;    // per SM, for stores
constexpr double latency_cycles = 2000;         // from the first load to the first product: published, cold

struct Estimate {
    double waves = 0;
    double cycles = 0;
};

Estimate estimate(Variant variant, const GemmProblem& problem, const DeviceProperties& device)
{
    const kernels::BlackwellConfig& config = kernels::blackwell_config(blackwell_rung(variant));
    const auto divided = [](std::int64_t value, std::uint32_t by) {
        return std::ceil(static_cast<double>(value) / static_cast<double>(by));
    };
    const std::int64_t rows = problem.d.row_major ? problem.m : problem.n;
    const std::int64_t columns = problem.d.row_major ? problem.n : problem.m;
    const double units =
        divided(rows, config.cluster_m()) * divided(columns, config.block_n) * static_cast<double>(problem.batches);
    const auto block_k = static_cast<std::uint32_t>(128 / size_of(problem.input));  // a stage is 128 bytes of K

    // An instruction of 128 rows (256 for a pair) needs N / 2 cycles, for every type. A stage needs four per block.
    const double products = 4.0 * config.m_tiles * config.block_n / 2.0;
    const double from_l2 = config.m_tiles * config.a_bytes() +
                           static_cast<double>(config.b_bytes()) / (config.multicast ? config.cluster : 1);
    const double step = std::max(products, from_l2 / bytes_per_cycle_from_l2);
    const double epilogue =
        128.0 * config.m_tiles * config.block_n * static_cast<double>(size_of(problem.output)) / bytes_per_cycle_to_l2;
    const double loop = divided(problem.k, block_k) * step;
    const bool overlaps = config.accumulators > config.m_tiles;

    Estimate result;
    result.waves = std::ceil(units / std::floor(static_cast<double>(device.sm_count) / config.cluster));
    const double tile = overlaps ? std::max(loop, epilogue) : loop + epilogue;
    result.cycles = latency_cycles + result.waves * tile + (overlaps ? epilogue : 0);
    return result;
}

}  // namespace

Variant choose_blackwell(const GemmProblem& problem, const DeviceProperties& device)
{
    return *std::ranges::min_element(candidates, {},
                                     [&](Variant variant) { return estimate(variant, problem, device).cycles; });
}

bool is_blackwell_candidate(Variant variant) noexcept
{
    return std::ranges::find(candidates, variant) != candidates.end();
}

double blackwell_cycles(Variant variant, const GemmProblem& problem, const DeviceProperties& device)
{
    return estimate(variant, problem, device).cycles;
}

std::string describe_blackwell(Variant variant, const GemmProblem& problem, const DeviceProperties& device)
{
    const kernels::BlackwellConfig& config = kernels::blackwell_config(blackwell_rung(variant));
    const Estimate result = estimate(variant, problem, device);
    return fmt::format("{}x{} tiles of {} in {:.0f} wave{}", config.cluster_m(), config.block_n,
                       config.cluster == 1 ? "one CTA" : "two CTAs", result.waves, result.waves == 1 ? "" : "s");
}

}  // namespace tessera::detail
