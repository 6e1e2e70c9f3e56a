#pragma once

/// Chooses a Blackwell configuration by a cost model that is calculated only: none of its figures was measured on a
/// Blackwell GPU. docs/notes/blackwell-kernel.md has the reasoning.

#include <string>

#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// Returns the choice that the model expects to be the fastest for an eligible problem.
KernelChoice choose_blackwell(const GemmProblem& problem, const DeviceProperties& device);

/// Returns the expected time, in SM cycles.
double expected_blackwell_cycles(const GemmProblem& problem, const DeviceProperties& device,
                                 const KernelChoice& choice);

/// Describes a choice: "Pair256x256, 74 work tiles in raster groups of 6".
std::string describe_blackwell(const GemmProblem& problem, const KernelChoice& choice);

}  // namespace tessera::detail
