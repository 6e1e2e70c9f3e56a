#pragma once

// Memory of objects of which a grid needs thousands, each for a moment.

#include <cstddef>
#include <new>

namespace tessera::emulator {

/// Base class of such objects of type T: on each CPU thread, new ones have the memory of those that were deleted.
template <typename T>
class Spare {
public:
    static void* operator new(std::size_t bytes)
    {
        static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ && sizeof(T) >= sizeof(Free));
        List& list = of_thread();
        if (list.first == nullptr || bytes != sizeof(T)) {
            return ::operator new(bytes);
        }
        Free* const taken = list.first;
        list.first = taken->next;
        --list.count;
        return taken;
    }
    static void operator delete(void* memory, std::size_t bytes) noexcept
    {
        List& list = of_thread();
        if (list.count == most || bytes != sizeof(T)) {
            ::operator delete(memory);
            return;
        }
        list.first = new (memory) Free{list.first};
        ++list.count;
    }

private:
    struct Free {
        Free* next;
    };
    struct List {
        Free* first = nullptr;
        std::size_t count = 0;

        List() = default;
        List(const List&) = delete;
        List& operator=(const List&) = delete;
        ~List()
        {
            count = most;  // what is deleted from now on is not kept
            while (first != nullptr) {
                Free* const next = first->next;
                ::operator delete(first);
                first = next;
            }
        }
    };
    static List& of_thread() noexcept
    {
        thread_local List list;
        return list;
    }
    static constexpr std::size_t most = 1024;
};

}  // namespace tessera::emulator
