#pragma once

/// Times contenders on the device against each other.
///
/// Terminology: a *contender* enqueues one product for a given input set. A *batch* is what one sample times: every
/// input set once (or several times), so that no launch finds its operands in L2. A *round* takes one sample of each
/// contender.
///
/// What keeps the comparison fair:
///   1. All contenders of a problem have batches of the same shape, on the same inputs.
///   2. Samples are taken in rounds, not contender by contender: a drifting or throttling clock affects all alike. Each
///      round starts with another contender, and every second round goes backwards, so that none always follows the
///      same one.
///   3. Before each sample, the same contender runs untimed for as long (the lead-in). The host is then ahead of the
///      device, so its launch calls do not count, and a power-limited clock has settled for this contender.
///   4. Short products are replayed from a graph, so that the gaps between kernels are the hardware's.

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "method/clock_sampler.hpp"
#include "method/sm_clock.hpp"
#include "tessera/event.hpp"
#include "tessera/graph.hpp"
#include "tessera/stream.hpp"

namespace tessera::bench {

struct Contender {
    std::string name;
    std::function<void(StreamRef stream, std::size_t set)> launch;
};

/// Products shorter than this are replayed from a graph.
inline constexpr double graph_below_seconds = 100e-6;
/// Short batches repeat the input sets until they last about this long: a thousand times the clock's resolution.
inline constexpr double shortest_batch_seconds = 500e-6;
/// The most launches in one graph.
inline constexpr std::size_t max_graph_launches = 1024;

struct BatchShape {
    std::size_t sets;
    std::size_t passes = 1;
    bool graph_replay = false;

    std::size_t launches() const noexcept { return sets * passes; }

    /// The shape for a problem whose fastest contender needs `seconds` per product. Replayed batches last at least
    /// `shortest`, if the graph's limit of launches permits; a longer batch uses every set once.
    static BatchShape for_product_time(std::size_t sets, double seconds, double shortest = shortest_batch_seconds);
};

class Batch {
public:
    Batch(StreamRef stream, const Contender& contender, BatchShape shape);

    void enqueue(StreamRef stream) const;
    const BatchShape& shape() const noexcept { return shape_; }

private:
    const Contender* contender_;
    BatchShape shape_;
    std::optional<Graph> graph_;
};

/// Measures device time between two points of a stream.
class DeviceTimer {
public:
    explicit DeviceTimer(const Device& device)
        : start_(device, EventKind::timing), stop_(device, EventKind::timing), sm_clock_(device)
    {}

    /// Seconds that one product of `batch` takes. Blocks. Calls `on_begin` when the device has begun with what is timed,
    /// unless it is empty: everything is enqueued by then.
    double seconds_per_product(StreamRef stream, const Batch& batch, const std::function<void()>& on_begin = {}) const;

    /// The SM clock during the latest of these calls that had an `on_begin`, in MHz.
    double sm_mhz(StreamRef stream) const { return sm_clock_.mhz(stream); }

private:
    Event start_;
    Event stop_;
    SmClock sm_clock_;
};

struct Rounds {
    std::size_t count;
    /// Idle time before each sample. If power or heat limits the clock, each sample then starts from about the same
    /// state, whichever contender was measured before.
    std::chrono::milliseconds pause{0};
    /// No new round begins after this, but there are always three.
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    /// Reads clock and power while each batch is timed; null: they are not read.
    ClockSampler* clocks = nullptr;
};

/// Takes a sample of each batch in each round. result[i] has the seconds per product of batches[i]. Calls
/// `on_round(round)` before each round.
std::vector<std::vector<double>> time_in_rounds(const DeviceTimer& timer, StreamRef stream,
                                                const std::vector<Batch>& batches, const Rounds& rounds,
                                                const std::function<void(std::size_t)>& on_round);

}  // namespace tessera::bench
