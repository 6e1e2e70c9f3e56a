#pragma once

/// Chooses a rung of the Blackwell ladder by a model on paper: no figure in it was measured here.
/// docs/blackwell-ladder.md has the reasoning.

#include <string>

#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// The rung that the model expects to be the fastest for an eligible problem.
Variant choose_blackwell(const GemmProblem& problem, const DeviceProperties& device);

/// Whether the model compares the rung at all.
bool is_blackwell_candidate(Variant variant) noexcept;

/// What the model expects.
double blackwell_cycles(Variant variant, const GemmProblem& problem, const DeviceProperties& device);

/// What the model counts for a rung, for people.
std::string describe_blackwell(Variant variant, const GemmProblem& problem, const DeviceProperties& device);

}  // namespace tessera::detail
