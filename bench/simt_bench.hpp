#pragma once

/// `tessera-bench simt`: the SIMT ladder against cuBLAS on the same device and the CPU of the same machine, all on the
/// same inputs.

#include <cstdint>
#include <functional>
#include <vector>

#include "report/report.hpp"
#include "tessera/device.hpp"

namespace tessera::bench {

struct SimtOptions {
    std::vector<Problem> problems;
    std::size_t rounds = 20;
    std::uint64_t seed = 1;
};

/// How the figures come about, in sentences for the reader of the table.
std::string describe_simt_method(const SimtOptions& options);

/// Measures all problems in order; `on_report` gets each report as soon as it is complete.
std::vector<ProblemReport> run_simt(const Device& device, const SimtOptions& options,
                                    const std::function<void(const ProblemReport&)>& on_report);

/// What the peers' figures depend on: cuBLAS's and OpenBLAS's versions and threads.
Environment environment_of_peers(const Device& device);

}  // namespace tessera::bench
