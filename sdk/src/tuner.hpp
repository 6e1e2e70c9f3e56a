#pragma once

/// What the tuner chooses from.

#include <vector>

#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// Everything that can run `problem`, which is resolved: all eligible variants with all their configurations.
std::vector<KernelChoice> all_candidates(const GemmProblem& problem, const DeviceProperties& device);

/// The largest difference between two right results for operands uniform in [-1, 1], apart from what rounding `value`
/// to D's type adds. Both add up K products in their own order.
double result_bound(const GemmProblem& problem, double value) noexcept;

}  // namespace tessera::detail
