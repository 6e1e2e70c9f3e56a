#pragma once

/// Counts what the program allocates through operator new, by replacing it. malloc inside of the CUDA driver is not
/// seen: the count is about this library.

#include <cstdint>

namespace tessera::bench {

/// Allocations of the calling thread since it began.
std::uint64_t heap_allocations() noexcept;

}  // namespace tessera::bench
