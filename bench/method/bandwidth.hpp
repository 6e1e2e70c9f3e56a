#pragma once

/// What the device's memory can do at most, by a kernel that does nothing but read.

#include <cstddef>
#include <cstdint>

#include "tessera/device.hpp"
#include "tessera/stream.hpp"

namespace tessera::bench {

/// Device memory to read, in whole chunks of 16 bytes: what is left behind the last one is not read.
struct ReadSpan {
    const void* data = nullptr;  ///< aligned to 16 bytes
    std::size_t bytes = 0;
};

/// Enqueues one launch that reads `a` and `b`. Asynchronous, can be captured into a graph.
/// @param sink  device memory that the kernel may write to
/// @throws std::runtime_error with CUDA's text
void enqueue_read(StreamRef stream, int sm_count, ReadSpan a, ReadSpan b, std::uint32_t* sink);

/// Bytes per second of such a kernel on far more memory than the second-level cache holds: the fastest of a few passes.
/// Blocks. @throws std::runtime_error with CUDA's text
double measure_read_bandwidth(const Device& device);

}  // namespace tessera::bench
