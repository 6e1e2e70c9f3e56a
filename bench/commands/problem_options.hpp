#pragma once

/// The options that choose problems, of the commands gemm and tune.

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gemm/presets.hpp"
#include "problem/problem.hpp"

namespace tessera::bench {

struct ProblemOptions {
    std::vector<std::string> presets;
    std::vector<std::string> epilogues{"none"};
    std::vector<std::string> accumulations{"fast"};
    std::vector<std::string> sums{"f32"};
    std::vector<std::string> shapes;
    std::vector<std::string> types{"bf16"};
    std::vector<std::string> orders{"rc"};
    std::vector<std::int64_t> paddings{0};
    std::vector<std::int64_t> tokens;
    std::size_t count = PresetOptions{}.count;
    std::optional<std::string> split;
};

void add_problem_options(CLI::App& command, ProblemOptions& options);

/// Returns all problems that are asked for, each with each epilogue and way to accumulate that it has.
/// @param seed  of the list `random`
/// @throws std::invalid_argument if there are none, or one is impossible
std::vector<Problem> problems_of(const ProblemOptions& options, std::uint64_t seed);

}  // namespace tessera::bench
