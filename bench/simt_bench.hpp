#pragma once

/// `tessera-bench simt`: compares the SIMT ladder with cuBLAS on the same device and with the CPU of the same machine,
/// all on the same inputs.

#include <cstdint>
#include <functional>
#include <vector>

#include "method/clock_sampler.hpp"
#include "report/report.hpp"
#include "tessera/device.hpp"

namespace tessera::bench {

struct SimtOptions {
    std::vector<Problem> problems;
    std::size_t rounds = 20;
    std::uint64_t seed = 1;
    ClockSampler* clocks = nullptr;  ///< reads clock and power while contenders are timed; null: they are not read
};

/// Explains the method, for the reader of the table.
std::string describe_simt_method(const SimtOptions& options);

/// Measures all problems in order; passes each report to `on_report` as soon as it is complete.
std::vector<ProblemReport> run_simt(const Device& device, const SimtOptions& options,
                                    const std::function<void(const ProblemReport&)>& on_report);

/// The versions and thread counts that the peers' figures depend on.
Environment environment_of_peers(const Device& device);

}  // namespace tessera::bench
