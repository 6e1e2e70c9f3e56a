#pragma once

/// This library's contenders.

#include <string>
#include <vector>

#include "gemm/contender.hpp"
#include "tessera/gemm.hpp"

namespace tessera::bench {

/// One contender for each variant: "tessera_automatic" is what Gemm::launch runs by itself.
///
/// @param variants  names as variant_from_string knows them, or "none". @throws Error `invalid_argument` for others
std::vector<GemmContender> our_contenders(const std::vector<std::string>& variants);

/// The task's product as the library is asked for it.
GemmProblem gemm_problem_of(const Task& task);
/// A plan for it, ready to be timed.
Prepared prepare_plan(const Task& task, const GemmPlan& plan);

}  // namespace tessera::bench
