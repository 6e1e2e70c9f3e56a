#pragma once

/// Chooses a Blackwell configuration by a cost model that is calculated only: none of its figures was measured on a
/// Blackwell GPU. docs/notes/blackwell-kernel.md has the reasoning.

#include <cstddef>
#include <string>

#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// Returns the choice that the model expects to be the fastest for an eligible problem, of those that need a workspace of at
/// most `workspace_limit` bytes.
KernelChoice choose_blackwell(const GemmProblem& problem, const DeviceProperties& device, std::size_t workspace_limit);

/// Returns the share of the time of all SMs, from the first stage to the last, in which a choice has stages for them to
/// multiply: what whole tiles leave idle is missing.
double busy_share_of_blackwell(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice);

/// Describes a choice: "Pair256x256, 74 work tiles in raster groups of 6".
std::string describe_blackwell(const GemmProblem& problem, const KernelChoice& choice);

}  // namespace tessera::detail
