#include "gemm/hopper/hopper_measured.hpp"

#include <algorithm>
#include <array>

#include "gemm/hopper/hopper_launch.hpp"

namespace tessera::detail {
namespace {

constexpr int measured_sm_count = 132;  // of the H200; an H100 has as many, and less bandwidth

// Written by bench/report/measured_choices.py.
constexpr std::array table{
#include "gemm/hopper/hopper_measured.inc"
};

/// Returns true if a product of `m` rows has as many tiles of 64 rows or more as the measured one, and not half as many rows.
bool has_rows_of(const MeasuredChoice& measured, std::int64_t m)
{
    constexpr std::int64_t least_tile_m = 64;
    return m <= measured.m && m > measured.m - (std::min(measured.m, 2 * least_tile_m) + 1) / 2;
}

}  // namespace

std::span<const MeasuredChoice> measured_choices() { return table; }

const MeasuredChoice* find_measured(const GemmProblem& problem, const DeviceProperties& device)
{
    const HopperShape shape = hopper_shape(problem, false);
    const bool is_alike = size_of(problem.input) == 2 && size_of(problem.output) == 2 && problem.batches == 1 &&
                          problem.d.row_major && problem.a.row_major && !problem.b.row_major && !shape.a_by_threads &&
                          !shape.b_by_threads && !problem.has_c && !problem.has_pre_activation &&
                          problem.gating == Gating::none && device.sm_count == measured_sm_count;
    if (!is_alike) {
        return nullptr;
    }
    const auto* const found = std::find_if(table.begin(), table.end(), [&](const MeasuredChoice& measured) {
        return has_rows_of(measured, problem.m) && measured.n == problem.n && measured.k == problem.k;
    });
    return found == table.end() ? nullptr : &*found;
}

bool is_measured(const MeasuredChoice& measured, const KernelChoice& choice)
{
    return kernels::hopper_kernels(2)[choice.config].name == measured.config && choice.clusters == measured.clusters &&
           choice.cluster_m == measured.cluster_m && choice.cluster_n == measured.cluster_n &&
           choice.cluster_k == measured.cluster_k && choice.swapped == measured.swapped &&
           choice.stream_k == measured.stream_k;
}

}  // namespace tessera::detail
