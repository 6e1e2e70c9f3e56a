#pragma once

/// Named lists of problems for `tessera-bench gemm`.
///
/// Most problems have the form of a layer of a neural network: A is (m, k) and row-major, B is (k, n) and column-major,
/// so that k is contiguous in both.

#include <string>
#include <string_view>
#include <vector>

#include "problem/problem.hpp"

namespace tessera::bench {

/// k is contiguous in both operands.
inline constexpr Orders k_contiguous{.a_row_major = true, .b_row_major = false};

/// The names that `preset` knows: "hopper", "fp8", ...
std::vector<std::string_view> preset_names();

/// The problems of that preset. @throws std::invalid_argument listing all names
std::vector<Problem> preset(std::string_view name);

}  // namespace tessera::bench
