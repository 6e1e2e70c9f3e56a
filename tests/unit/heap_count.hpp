#pragma once

namespace tessera::test {

/// How often the calling thread has allocated from the heap, apart from what the fake runtime keeps for itself.
long heap_allocations() noexcept;

}  // namespace tessera::test
