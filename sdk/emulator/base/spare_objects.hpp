#pragma once

// Memory of objects of which a grid needs thousands, each for a moment.

#include <cstddef>
#include <new>

#include "base/free_list.hpp"

namespace tessera::emulator {

/// Base class of such objects of type T: on each CPU thread, new ones have the memory of those that were deleted.
template <typename T>
class Spare {
public:
    static void* operator new(std::size_t bytes)
    {
        static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ && sizeof(T) >= sizeof(void*));
        void* const spare = bytes == sizeof(T) ? of_thread().take() : nullptr;
        return spare != nullptr ? spare : ::operator new(bytes);
    }
    static void operator delete(void* memory, std::size_t bytes) noexcept
    {
        of_thread().add(memory, bytes == sizeof(T) ? most : 0);
    }

private:
    static FreeList& of_thread() noexcept
    {
        thread_local FreeList list;
        return list;
    }
    static constexpr std::size_t most = 1024;
};

}  // namespace tessera::emulator
