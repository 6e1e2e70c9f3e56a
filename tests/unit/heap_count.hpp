#pragma once

namespace tessera::test {

/// Number of heap allocations of the calling thread, not counting those of the fake runtime.
long heap_allocations() noexcept;

}  // namespace tessera::test
