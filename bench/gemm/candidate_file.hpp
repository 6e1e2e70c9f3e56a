#pragma once

/// The times of all Hopper configurations of a problem, with everything that the cost model knows about them: what
/// report/fit_chooser.py fits the model's constants to.

#include <fstream>
#include <string>
#include <vector>

#include "problem/problem.hpp"
#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::bench {

/// A CSV file with one row per problem and configuration, written problem by problem.
class CandidateFile {
public:
    /// @throws std::invalid_argument if the file cannot be written
    explicit CandidateFile(const std::string& path);

    /// Adds rows. `resolved` is the problem as the library sees it; `seconds` are per product, infinite for a
    /// configuration that failed. @throws std::runtime_error if writing fails
    void write(const Problem& problem, const GemmProblem& resolved, const DeviceProperties& device,
               const std::vector<detail::KernelChoice>& choices, const std::vector<double>& seconds);

private:
    std::string path_;
    std::ofstream file_;
};

}  // namespace tessera::bench
