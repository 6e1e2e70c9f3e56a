#pragma once

/// Tessera's contenders.

#include <string>
#include <vector>

#include "gemm/contender.hpp"
#include "tessera/gemm.hpp"

namespace tessera::bench {

/// Returns one contender per variant. "tessera_automatic" is what Gemm::launch chooses by itself.
///
/// @param variants  names for variant_from_string, or "none". @throws Error `invalid_argument` for others
std::vector<GemmContender> our_contenders(const std::vector<std::string>& variants);

/// Returns the task's product as a problem for the library.
GemmProblem gemm_problem_of(const Task& task);

/// Returns the task's epilogue on one set of operands.
Epilogue epilogue_of(const Task& task, const Operands& set);
/// Returns a plan for it, ready to be timed.
Prepared prepare_plan(const Task& task, const GemmPlan& plan);

}  // namespace tessera::bench
