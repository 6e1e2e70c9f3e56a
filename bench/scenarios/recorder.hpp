#pragma once

/// Times the phases of a run: the host's time by its clock, the device's by events. The optimized entry's phases are NVTX ranges,
/// too, so that a profiler shows them.

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/event.hpp"
#include "tessera/stream.hpp"

namespace tessera::scenarios {

/// The sums of all parts of one run that have this name.
struct Phase {
    std::string name;
    double host_seconds = 0;
    double device_seconds = 0;  ///< 0 if the phase has no work on a device
    bool on_device = false;
};

/// The runs of an entry.
struct EntryTimes {
    std::vector<double> seconds;  ///< of each run, from its beginning to its complete result
    std::vector<Phase> phases;    ///< the median over the runs
};

/// Returns the median time of a run.
double median_of(const EntryTimes& times);

/// An NVTX range of the domain "tessera-scenarios", if wanted.
class Range {
public:
    Range(bool wanted, std::string_view name);
    ~Range();
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;

private:
    bool wanted_;
};

/// The phases of one run.
class Recorder {
public:
    explicit Recorder(bool optimized) : optimized_(optimized) {}

    /// Does `work`, which enqueues on `stream`: the phase's device time is that between the first and the last of it. Work that waits
    /// for another stream belongs outside, if the time of waiting should not count.
    template <class Work>
    void on_stream(std::string_view name, StreamRef stream, Work&& work)
    {
        const Range range(optimized_, name);
        const std::size_t place = place_of(name);
        phases_[place].on_device = true;
        Pair& pair = next_pair(place, stream);
        const auto start = std::chrono::steady_clock::now();
        pair.start.record(stream);
        std::forward<Work>(work)();
        pair.stop.record(stream);
        add_host(place, start);
    }

    /// Does `work` of the host.
    template <class Work>
    void on_host(std::string_view name, Work&& work)
    {
        const Range range(optimized_, name);
        const auto start = std::chrono::steady_clock::now();
        std::forward<Work>(work)();
        add_host(place_of(name), start);
    }

    /// Returns the phases of the run in the order of their first parts, and forgets them. Waits for the last of them.
    std::vector<Phase> take();

private:
    /// Events are reused by the next run.
    struct Pair {
        Event start;
        Event stop;
        std::size_t phase = 0;
    };

    std::size_t place_of(std::string_view name);
    Pair& next_pair(std::size_t phase, StreamRef stream);
    void add_host(std::size_t place, std::chrono::steady_clock::time_point start)
    {
        phases_[place].host_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    bool optimized_;
    std::vector<Phase> phases_;
    std::vector<Pair> pairs_;
    std::size_t used_ = 0;  // pairs of this run
};

/// Returns the median of each phase over the runs, which all have the same phases.
std::vector<Phase> medians_of(const std::vector<std::vector<Phase>>& runs);

}  // namespace tessera::scenarios
