#pragma once

/// `tessera-bench gemm`: compares Gemm::launch with cuBLASLt on the same device, in one process, on the same inputs.

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
    std::vector<std::string> variants{"automatic"};  ///< of Tessera
    std::optional<std::string> config;  ///< also measure the Hopper configurations whose description has this text
    double shortlist{0};                ///< with `config`: see hopper_config_contenders
    std::size_t finalists{1};           ///< with `config`: of the fastest, each measured beside the peers
    std::string candidates_file;        ///< with `config`: receives the time of each of these configurations
    Tuning tuning;                      ///< also measure the tuned choice
    bool remarks = false;               ///< print each contender's choice below its row
    bool peers = true;                  ///< measure cuBLASLt
    bool reader = false;                ///< also measure a kernel that only reads A and B
    std::size_t rounds = 15;
    /// Idle time before each sample. Without pauses, a large GPU runs at its power limit, as in continuous service.
    /// With pauses, a product is measured as if it ran alone between other work.
    std::chrono::milliseconds pause{0};
    /// Shortest sample, if the graph's limit of launches permits. It is long enough for the power limit to settle for
    /// this contender.
    std::chrono::milliseconds sample{50};
    std::size_t most_sets = max_graph_launches;  ///< operand sets; with few, the operands stay in L2
    double time_limit_seconds = 0;               ///< 0: no limit
    std::uint64_t seed = 1;
    ClockSampler* clocks = nullptr;  ///< reads clock and power while contenders are timed; null: they are not read
};

/// Explains the method, for the reader of the table.
std::string describe_gemm_method(const GemmOptions& options);

/// The versions that cuBLASLt's figures depend on, or why it is not measured.
Environment environment_of_gemm_peers(const Device& device, const GemmOptions& options);

/// Prints the table to standard output while it grows, and returns all measurements.
std::vector<ProblemReport> run_gemm(const Device& device, const GemmOptions& options);

}  // namespace tessera::bench
