#pragma once

/// `tessera-bench gemm`: Gemm::launch against cuBLASLt on the same device, in one process, on the same inputs.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "report/report.hpp"
#include "tessera/device.hpp"

namespace tessera::bench {

struct GemmOptions {
    std::vector<Problem> problems;
    std::vector<std::string> variants;  ///< of ours, besides the automatic choice
    bool peers = true;                  ///< cuBLASLt takes part
    std::size_t rounds = 30;
    std::chrono::milliseconds pause{10};  ///< before each sample
    double time_limit_seconds = 0;        ///< 0: none
    std::uint64_t seed = 1;
};

/// How the figures come about, in sentences for the reader of the table.
std::string describe_gemm_method(const GemmOptions& options);

/// What cuBLASLt's figures depend on, or why it does not take part.
Environment environment_of_gemm_peers(const Device& device, const GemmOptions& options);

/// Prints the table as it grows, on standard output, and returns all that was measured.
std::vector<ProblemReport> run_gemm(const Device& device, const GemmOptions& options);

}  // namespace tessera::bench
