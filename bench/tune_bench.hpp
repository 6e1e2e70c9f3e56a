#pragma once

/// `tessera-bench tune`: runs Gemm::tune for a problem and prints the candidates' times.

#include <string>
#include <vector>

#include "problem/problem.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_tuner.hpp"

namespace tessera::bench {

struct TuneOptions {
    std::vector<Problem> problems;
    TuningOptions tuning;
    std::size_t listed = 12;  ///< candidates to list
    std::string cache_file;   ///< written after each problem; may be empty
};

/// Prints a table for each problem to standard output, fastest candidate first.
void run_tune(const Device& device, const TuneOptions& options);

}  // namespace tessera::bench
