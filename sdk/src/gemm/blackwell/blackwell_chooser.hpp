#pragma once

/// Chooses a rung of the Blackwell ladder by a cost model that is calculated only: none of its figures was measured.
/// docs/notes/blackwell-kernel.md has the reasoning.

#include <string>

#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// Returns the rung that the model expects to be the fastest for an eligible problem.
Variant choose_blackwell(const GemmProblem& problem, const DeviceProperties& device);

/// Returns true if the model compares the rung.
bool is_blackwell_candidate(Variant variant) noexcept;

/// Returns the expected time, in SM cycles.
double blackwell_cycles(Variant variant, const GemmProblem& problem, const DeviceProperties& device);

/// Describes how the model arrives at a rung's time, for explain().
std::string describe_blackwell(Variant variant, const GemmProblem& problem, const DeviceProperties& device);

}  // namespace tessera::detail
