#pragma once

/// What keeps a plan from serving operands, in words.

#include <string>

#include "gemm_batches.hpp"
#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// Whether a plan for `planned`, with `choice` as its kernel, serves `given`. Addresses may be aligned worse than
/// planned as long as the kernel runs with the workspace that was planned.
bool serves(const GemmProblem& planned, const KernelChoice& choice, const GemmProblem& given,
            const DeviceProperties& device);

/// One line for each difference, e.g. "A's leading dimension is 128, the plan was prepared for 64".
std::string differences(const GemmProblem& planned, const KernelChoice& choice, const GemmProblem& given);

}  // namespace tessera::detail
