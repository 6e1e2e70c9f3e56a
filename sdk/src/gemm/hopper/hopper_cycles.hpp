#pragma once

/// The cost model of the Hopper kernels. docs/notes/hopper-chooser.md has the measurements.

#include "tessera/detail/element_type.hpp"
#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// Returns the time that the model expects, in SM cycles. Only the order of the results matters. `choice` can run `problem`.
double expected_hopper_cycles(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice);

/// Returns true if rows of the operand begin inside a cache sector of 32 bytes.
bool straddles_sectors(const MatrixLayout& layout, ElementType type);

}  // namespace tessera::detail
