#pragma once

/// Counts allocations through operator new by replacing it. malloc in the CUDA driver is not counted: the count is
/// about this library.

#include <cstdint>

namespace tessera::bench {

/// Number of allocations of the calling thread since it began.
std::uint64_t heap_allocations() noexcept;

}  // namespace tessera::bench
