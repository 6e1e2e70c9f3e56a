#pragma once

/// Named lists of problems for `tessera-bench gemm`.
///
/// A problem's usual form is that of a layer of a neural network: A is (m, k) and row-major, B is (k, n) and
/// column-major, so that both lie with k contiguous.

#include <string>
#include <string_view>
#include <vector>

#include "problem/problem.hpp"

namespace tessera::bench {

/// Both operands with k contiguous.
inline constexpr Orders k_contiguous{.a_row_major = true, .b_row_major = false};

/// The names that `preset` knows: "hopper", "fp8", ...
std::vector<std::string_view> preset_names();

/// The problems of that name. @throws std::invalid_argument listing all names
std::vector<Problem> preset(std::string_view name);

}  // namespace tessera::bench
