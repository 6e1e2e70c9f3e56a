/// Counts heap allocations by replacing the global operator new.

#include "heap_count.hpp"

#include <cstdlib>
#include <new>

#include "fake_runtime/fake_runtime.hpp"

namespace {

thread_local long allocations = 0;

}  // namespace

long tessera::test::heap_allocations() noexcept { return allocations; }

void* operator new(std::size_t bytes)
{
    if (!tessera::fake::inside_runtime()) {
        ++allocations;
    }
    if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) {
        return memory;
    }
    throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
