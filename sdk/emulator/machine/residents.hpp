#pragma once

// The clusters of a launch, as the device holds them: those that are resident run side by side, and when one has
// finished, the next of its sequence starts.

#include <mutex>
#include <string>

#include "machine/grid.hpp"

namespace tessera::emulator {

/// The fault of the cluster with the lowest number, and the sum of the statistics.
class Outcome {
public:
    void add(const Statistics& statistics);
    void fail(std::uint64_t cluster, int code, const std::string& message);
    /// The recorded schedule does not fit.
    void misfit(std::uint64_t cluster, const std::string& message);
    [[nodiscard]] LaunchResult result() const { return {code_, message_, sum_, fits_}; }

private:
    std::mutex mutex_;
    Statistics sum_;
    std::uint64_t cluster_ = 0;
    int code_ = 0;
    std::string message_;
    bool fits_ = true;
};

/// Runs all clusters of the grid on up to `threads` CPU threads. What the program computes does not depend on their
/// number: an access that synchronizes clusters happens in the cluster's turn, one cluster after the other.
void run_clusters(Grid& grid, Outcome& outcome, unsigned threads);

}  // namespace tessera::emulator
