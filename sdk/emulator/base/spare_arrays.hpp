#pragma once

// Memory of small arrays of which a grid needs thousands, each for a moment.

#include <array>
#include <bit>
#include <cstddef>
#include <new>

namespace tessera::emulator {

/// Free memory of one CPU thread, by size: powers of two.
class SpareMemory {
public:
    static void* take(std::size_t bytes)
    {
        const unsigned log_size = log_size_of(bytes);
        if (log_size > most_log_size) {
            return ::operator new(bytes);
        }
        List& list = of_thread().lists[log_size];
        if (list.first == nullptr) {
            return ::operator new(std::size_t{1} << log_size);
        }
        Free* const taken = list.first;
        list.first = taken->next;
        --list.count;
        return taken;
    }
    static void give_back(void* memory, std::size_t bytes) noexcept
    {
        const unsigned log_size = log_size_of(bytes);
        if (log_size > most_log_size || of_thread().lists[log_size].count >= most_bytes >> log_size) {
            ::operator delete(memory);
            return;
        }
        List& list = of_thread().lists[log_size];
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
    };
    static constexpr unsigned least_log_size = 6, most_log_size = 16;
    static constexpr std::size_t most_bytes = std::size_t{1} << 20;  // of each size
    struct Lists {
        std::array<List, most_log_size + 1> lists;

        Lists() = default;
        Lists(const Lists&) = delete;
        Lists& operator=(const Lists&) = delete;
        ~Lists()
        {
            for (List& list : lists) {
                list.count = most_bytes;  // what is given back from now on is not kept
                while (list.first != nullptr) {
                    Free* const next = list.first->next;
                    ::operator delete(list.first);
                    list.first = next;
                }
            }
        }
    };
    static unsigned log_size_of(std::size_t bytes) noexcept
    {
        const auto log_size = static_cast<unsigned>(std::bit_width(bytes == 0 ? 0 : bytes - 1));
        return log_size < least_log_size ? least_log_size : log_size;
    }
    static Lists& of_thread() noexcept
    {
        thread_local Lists lists;
        return lists;
    }
};

/// For containers of T.
template <typename T>
struct SpareAllocator {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    using value_type = T;

    SpareAllocator() = default;
    template <typename U>
    SpareAllocator(const SpareAllocator<U>&) noexcept
    {}
    [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(SpareMemory::take(count * sizeof(T))); }
    void deallocate(T* memory, std::size_t count) noexcept { SpareMemory::give_back(memory, count * sizeof(T)); }
    friend bool operator==(const SpareAllocator&, const SpareAllocator&) noexcept { return true; }
};

}  // namespace tessera::emulator
