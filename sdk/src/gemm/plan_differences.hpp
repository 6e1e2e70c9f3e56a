#pragma once

/// Says why a plan does not fit operands.

#include <string>

#include "gemm/gemm_batches.hpp"
#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// Returns true if a plan for `planned`, with `choice` as its kernel, fits `given`. Addresses may be less aligned than
/// planned if the kernel still runs with the planned workspace.
bool serves(const GemmProblem& planned, const KernelChoice& choice, const GemmProblem& given,
            const DeviceProperties& device);

/// One line per difference, e.g. "A's leading dimension is 128, the plan was prepared for 64".
std::string differences(const GemmProblem& planned, const KernelChoice& choice, const GemmProblem& given);

}  // namespace tessera::detail
