#pragma once

// A timeline of launches as Chrome trace events (JSON), which ui.perfetto.dev shows: docs/notes/emulator-schedules.md.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "machine/monitor.hpp"

namespace tessera::emulator {

/// Makes the events. A process is a CTA, and process 0 has the launches; the time of a cluster is its scheduler steps.
/// Thread-safe.
class Trace : public Monitor {
public:
    /// Gets objects, separated by commas, after each launch: parts of the array of events.
    using Write = std::function<void(std::string_view events)>;
    /// `most_events`: no cluster that starts after so many is traced, and each stops at so many of its own.
    explicit Trace(Write write, std::uint64_t most_events = 400'000);
    ~Trace() override;

    [[nodiscard]] std::unique_ptr<LaunchMonitor> start(const std::string& kernel,
                                                       const LaunchRequest& request) override;
    /// Number of clusters of which something was left out.
    [[nodiscard]] std::uint64_t clusters_cut() const;

private:
    friend class TracedLaunch;
    /// The launch began at `begin` and took `steps`. Writes its slice and `events`.
    void end(const std::string& name, std::uint64_t begin, std::uint64_t steps, const std::string& arguments,
             std::string events);

    Write write_;
    const std::uint64_t most_events_;
    mutable std::mutex mutex_;
    std::uint64_t events_ = 0, end_ = 0, processes_ = 0, arrows_ = 0, cut_ = 0;
    std::vector<std::uint64_t> launches_until_;  // by track: launches of several streams overlap
};

}  // namespace tessera::emulator
