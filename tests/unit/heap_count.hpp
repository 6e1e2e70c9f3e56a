#pragma once

namespace tessera::test {

/// Number of heap allocations of the calling thread, not counting those of the fake runtime.
long heap_allocations() noexcept;

/// Lets the `nth` allocation of the calling thread from now on fail, once, not counting those of the fake runtime.
void fail_allocation(long nth) noexcept;
/// Returns true if it has failed. In any case, no allocation fails from now on.
bool allocation_has_failed() noexcept;

}  // namespace tessera::test
