#pragma once

/// Measures the device's memory bandwidth with a kernel that only reads.

#include <cstddef>
#include <cstdint>

#include "tessera/device.hpp"
#include "tessera/stream.hpp"

namespace tessera::bench {

/// Device memory to read, in whole chunks of 16 bytes; the rest is not read.
struct ReadSpan {
    const void* data = nullptr;  ///< 16-byte aligned
    std::size_t bytes = 0;
};

/// Enqueues one launch that reads `a` and `b`. Asynchronous, can be captured into a graph.
/// @param sink  device memory that the kernel may write to
/// @throws std::runtime_error with CUDA's text
void enqueue_read(StreamRef stream, int sm_count, ReadSpan a, ReadSpan b, std::uint32_t* sink);

/// Returns the bytes per second of this kernel on far more memory than L2 holds: the fastest of a few passes. Blocks.
/// @throws std::runtime_error with CUDA's text
double measure_read_bandwidth(const Device& device);

}  // namespace tessera::bench
