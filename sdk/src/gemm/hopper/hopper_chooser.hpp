#pragma once

/// Chooses the Hopper kernel's configuration: a measured one, or the fastest by the cost model.

#include <cstddef>
#include <limits>
#include <string>

#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// Returns the configuration that was measured, or that the cost model expects, to be the fastest for an eligible problem, among
/// those that need a workspace of at most `workspace_limit` bytes. Returns Variant::automatic if there is none.
KernelChoice choose_hopper(const GemmProblem& problem, const DeviceProperties& device,
                           std::size_t workspace_limit = std::numeric_limits<std::size_t>::max());

/// Describes a choice, e.g. "Tile128x256, 66 clusters of 2x1x1 CTAs, raster groups of 8 tiles".
std::string describe_hopper(const GemmProblem& problem, const KernelChoice& choice);

}  // namespace tessera::detail
