#pragma once

/// Chooses the Hopper kernel's configuration by a cost model; docs/plan-chooser.md has the measurements behind it.

#include <string>

#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// The configuration that the cost model expects to be the fastest for an eligible problem.
KernelChoice choose_hopper(const GemmProblem& problem, const DeviceProperties& device);

/// For people, e.g. "Tile128x256, clusters of 2x1 CTAs, 66 of them".
std::string describe_hopper(const GemmProblem& problem, const KernelChoice& choice);

}  // namespace tessera::detail
