#pragma once

/// `tessera-bench gemm`: Gemm::launch against cuBLASLt on the same device, in one process, on the same inputs.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gemm/tuned.hpp"
#include "method/timer.hpp"
#include "report/report.hpp"
#include "tessera/device.hpp"

namespace tessera::bench {

struct GemmOptions {
    std::vector<Problem> problems;
    std::vector<std::string> variants{"automatic"};  ///< of ours
    std::optional<std::string> config;               ///< also the Hopper configurations that this text describes
    Tuning tuning;                                   ///< the tuned choice takes part
    bool remarks = false;                            ///< what was chosen is printed below each row
    bool peers = true;                               ///< cuBLASLt takes part
    bool reader = false;                             ///< a kernel that only reads A and B takes part
    std::size_t rounds = 15;
    /// Before each sample. Without pauses a large GPU runs at its power limit, as it does in long service; with some,
    /// it is measured as a single product in between other work meets it.
    std::chrono::milliseconds pause{0};
    /// What a sample lasts at least, as far as a graph's launches reach: long enough for the power limit to answer to
    /// the contender itself.
    std::chrono::milliseconds sample{50};
    std::size_t most_sets = max_graph_launches;  ///< of operands; few leave them in the second-level cache
    double time_limit_seconds = 0;               ///< 0: none
    std::uint64_t seed = 1;
};

/// How the figures come about, in sentences for the reader of the table.
std::string describe_gemm_method(const GemmOptions& options);

/// What cuBLASLt's figures depend on, or why it does not take part.
Environment environment_of_gemm_peers(const Device& device, const GemmOptions& options);

/// Prints the table as it grows, on standard output, and returns all that was measured.
std::vector<ProblemReport> run_gemm(const Device& device, const GemmOptions& options);

}  // namespace tessera::bench
