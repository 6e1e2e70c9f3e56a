#pragma once

/// What the device's memory can do at most: the ceiling that a roofline needs.

#include "tessera/device.hpp"

namespace tessera::bench {

/// Bytes per second of a kernel that only reads, from far more memory than the second-level cache holds: the fastest of
/// a few passes. Blocks. @throws std::runtime_error with CUDA's text
double measure_read_bandwidth(const Device& device);

}  // namespace tessera::bench
