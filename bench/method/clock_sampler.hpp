#pragma once

/// Reads a device's clock and power while contenders are timed.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "method/nvml.hpp"

namespace tessera::bench {

/// The readings during all samples of one contender on one problem.
struct ClockSummary {
    std::size_t readings = 0;    ///< 0: not read, or every sample was over too soon; the other fields mean nothing
    double sm_mhz = 0;           ///< median
    double watts = 0;            ///< the highest; 0: unknown
    std::uint64_t throttle = 0;  ///< everything that limited the clock in any of the readings
    std::vector<double> samples_sm_mhz;  ///< of each sample, as the device counted it; known even without readings
};

ClockSummary summarize_clocks(const std::vector<DeviceReading>& readings);

/// A thread that reads every few milliseconds between `begin` and `end`, and sleeps otherwise. Calls neither the CUDA
/// runtime nor the timed stream. A reading that ends after `end` does not count, since the device may be idle by then.
class ClockSampler {
public:
    using Read = std::function<DeviceReading()>;
    static constexpr std::chrono::milliseconds usual_interval{5};

    /// @param read  called by the thread; if it throws, reading ends for good
    explicit ClockSampler(Read read, std::chrono::milliseconds interval = usual_interval);
    ~ClockSampler();
    ClockSampler(const ClockSampler&) = delete;
    ClockSampler& operator=(const ClockSampler&) = delete;

    /// Forgets all readings. There are `contenders` from now on.
    void restart(std::size_t contenders);
    /// The timed work of this contender is running.
    void begin(std::size_t contender);
    /// It has ended.
    /// @param sm_mhz  the SM clock in this sample, as the device counted it
    void end(double sm_mhz);
    /// One for each contender.
    std::vector<ClockSummary> summaries() const;

private:
    void run();

    Read read_;
    std::chrono::milliseconds interval_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<std::size_t> contender_;  // being timed
    std::size_t turn_ = 0;                  // counts calls of begin
    bool leaves_ = false;
    std::vector<std::vector<DeviceReading>> readings_;
    std::vector<std::vector<double>> samples_sm_mhz_;
    std::thread thread_;  // last: uses the others
};

}  // namespace tessera::bench
