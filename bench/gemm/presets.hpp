#pragma once

/// Named lists of problems for `tessera-bench gemm`, and their two halves for fitting a model.
///
/// Most problems have the form of a layer of a neural network: A is (m, k) and row-major, B is (k, n) and column-major,
/// so that k is contiguous in both.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "problem/problem.hpp"

namespace tessera::bench {

/// k is contiguous in both operands.
inline constexpr Orders k_contiguous{.a_row_major = true, .b_row_major = false};

/// What the lists "models" and "random" can be asked for; the others are fixed.
struct PresetOptions {
    std::vector<Types> types{{ElementType::bf16, ElementType::bf16}};  ///< models: one problem for each
    std::vector<Orders> orders{k_contiguous};                          ///< models: one problem for each
    std::vector<std::int64_t> tokens;  ///< models: M of every layer; empty: one count per layer, in turn
    std::uint64_t seed = 1;            ///< random
    std::size_t count = 100;           ///< random
};

/// The names that `preset` knows: "hopper", "fp8", ...
std::vector<std::string_view> preset_names();

/// The problems of that preset. @throws std::invalid_argument listing all names
std::vector<Problem> preset(std::string_view name, const PresetOptions& options = {});

/// The two halves of every list: constants are fitted to one, and their error is reported on the other.
enum class Split : std::uint8_t { fit, held_out };

/// "fit" or "held-out". @throws std::invalid_argument
Split parse_split(std::string_view text);

/// Returns the half that a problem is in. One in four is held out. It depends on extents, types, orders and gaps alone,
/// not on the list or the epilogue, and never changes.
Split split_of(const Problem& problem);

}  // namespace tessera::bench
