/// Counts heap allocations, and lets one fail, by replacing the global operator new.

#include "heap_count.hpp"

#include <cstdlib>
#include <new>

#include "fake_runtime/fake_runtime.hpp"

namespace {

thread_local long allocations = 0;
thread_local long failing = -1;  // the one that fails, in the same count

}  // namespace

long tessera::test::heap_allocations() noexcept { return allocations; }

void tessera::test::fail_allocation(long nth) noexcept { failing = allocations + nth; }

bool tessera::test::allocation_has_failed() noexcept
{
    const bool failed = failing >= 0 && allocations >= failing;
    failing = -1;
    return failed;
}

void* operator new(std::size_t bytes)
{
    if (!tessera::fake::inside_runtime()) {
        if (++allocations == failing) {
            throw std::bad_alloc();
        }
    }
    if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) {
        return memory;
    }
    throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
