#pragma once

/// Runs a test case on one configuration of one kernel, which Gemm::launch would not choose for it.

#include <functional>
#include <string>

#include "base/call_status.hpp"
#include "gemm/workspace_need.hpp"
#include "gemm_case.hpp"
#include "gemm_runner.hpp"
#include "kernels/gemm/gemm_arguments.hpp"

namespace tessera::test {

/// Launches the kernel on the choice.
using LaunchChoice = std::function<detail::CallStatus(const GemmProblem&, const kernels::GemmArguments&,
                                                      const detail::WorkspaceMemory&)>;

enum class Launches { once, twice };

/// Launches a case with a workspace of its own that has NaN in place of partial sums. The result must be right, that of a second
/// launch must have the same bits, and the counters of the workspace must be zero afterwards. Failures go to report_failure.
/// @param name  of the case and the choice
void check_choice(StreamRef stream, const GemmCase& gemm, const Reference& reference, DeviceOperands& operands,
                  const std::string& name, const detail::WorkspaceNeed& need, const Summation& summation,
                  Launches launches, const LaunchChoice& launch);

}  // namespace tessera::test
