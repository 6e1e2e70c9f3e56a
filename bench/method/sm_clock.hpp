#pragma once

/// The SM clock between two points of a stream, counted on the device.

#include <cstdint>

#include "tessera/device_buffer.hpp"
#include "tessera/stream.hpp"

namespace tessera::bench {

/// NVML reads the clock now and then. This is its mean over what lies between `begin` and `end`: each SM's cycles, over the
/// nanoseconds of the GPU's timer. So it also tells how many cycles a product needs.
class SmClock {
public:
    explicit SmClock(const Device& device);

    /// Enqueues a kernel that reads both counters on each SM.
    void begin(StreamRef stream) const;
    void end(StreamRef stream) const;
    /// The median over all SMs in MHz; 0 if no SM has run both kernels. Waits for them.
    double mhz(StreamRef stream) const;

    struct Reading {
        std::int64_t cycles;
        std::int64_t nanoseconds;
    };

private:
    void read(StreamRef stream, int slot) const;

    int sms_;
    mutable DeviceBuffer<Reading> readings_;  // of `begin`, then of `end`
};

}  // namespace tessera::bench
