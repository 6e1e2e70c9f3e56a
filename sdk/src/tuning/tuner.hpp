#pragma once

/// The tuner's candidates, and how much two right results may differ.

#include <vector>

#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// Returns everything that can run `problem`: all eligible variants with all their configurations. `problem` must be
/// resolved.
std::vector<KernelChoice> all_candidates(const GemmProblem& problem, const DeviceProperties& device);

/// Returns the largest difference between two right results for operands uniform in [-1, 1], not counting the rounding
/// of `value` to D's type. The two add the same K products in different orders.
double result_bound(const GemmProblem& problem, double value) noexcept;

}  // namespace tessera::detail
