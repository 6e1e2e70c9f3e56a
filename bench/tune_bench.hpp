#pragma once

/// `tessera-bench tune`: what Gemm::tune tries for a problem, and how each candidate does.

#include <string>
#include <vector>

#include "problem/problem.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_tuner.hpp"

namespace tessera::bench {

struct TuneOptions {
    std::vector<Problem> problems;
    TuningOptions tuning;
    std::size_t listed = 12;  ///< candidates in a table
    std::string cache_file;   ///< written after each problem; or empty
};

/// Prints a table for each problem on standard output, fastest candidate first.
void run_tune(const Device& device, const TuneOptions& options);

}  // namespace tessera::bench
