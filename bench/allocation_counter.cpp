#include "allocation_counter.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t allocations = 0;

void* allocate(std::size_t size, std::size_t alignment)
{
    ++allocations;
    // aligned_alloc requires a size that is a multiple of the alignment and not 0.
    const std::size_t rounded = (size / alignment + 1) * alignment;
    if (void* const memory = std::aligned_alloc(alignment, rounded)) {
        return memory;
    }
    throw std::bad_alloc();
}

}  // namespace

// The standard's other forms (arrays, nothrow) forward to these.
void* operator new(std::size_t size) { return allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t size, std::align_val_t alignment)
{
    return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace tessera::bench {

std::uint64_t heap_allocations() noexcept { return allocations; }

}  // namespace tessera::bench
