#pragma once

// Memory of small arrays of which a grid needs thousands, each for a moment.

#include <array>
#include <bit>
#include <cstddef>
#include <new>

#include "base/free_list.hpp"

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
        void* const spare = of_thread()[log_size].take();
        return spare != nullptr ? spare : ::operator new(std::size_t{1} << log_size);
    }
    static void give_back(void* memory, std::size_t bytes) noexcept
    {
        const unsigned log_size = log_size_of(bytes);
        if (log_size > most_log_size) {
            ::operator delete(memory);
            return;
        }
        of_thread()[log_size].add(memory, most_bytes >> log_size);
    }

private:
    static constexpr unsigned least_log_size = 6, most_log_size = 16;
    static constexpr std::size_t most_bytes = std::size_t{1} << 20;  // of each size
    using Lists = std::array<FreeList, most_log_size + 1>;

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
