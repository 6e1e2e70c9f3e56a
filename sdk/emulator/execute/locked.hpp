#pragma once

// Memory operations that are atomic with respect to other CPU threads: clusters on different threads share global
// memory.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tessera::emulator {

/// Few processors have 128-bit atomic operations. Locks, shared by several addresses, replace them.
class WideLock {
public:
    explicit WideLock(const void* address) noexcept
        : flag_(flags_[reinterpret_cast<std::uintptr_t>(address) / 16 % flags_.size()])
    {
        while (flag_.test_and_set(std::memory_order_acquire)) {
        }
    }
    ~WideLock() { flag_.clear(std::memory_order_release); }
    WideLock(const WideLock&) = delete;
    WideLock& operator=(const WideLock&) = delete;

private:
    static inline std::array<std::atomic_flag, 64> flags_{};
    std::atomic_flag& flag_;
};

template <typename T>
[[nodiscard]] T load_strong(const std::byte* at) noexcept
{
    if constexpr (sizeof(T) <= 8) {
        return std::atomic_ref<T>(*reinterpret_cast<T*>(const_cast<std::byte*>(at))).load(std::memory_order_acquire);
    } else {
        const WideLock lock(at);
        T value;
        std::memcpy(&value, at, sizeof(T));
        return value;
    }
}

template <typename T>
void store_strong(std::byte* at, const T& value) noexcept
{
    if constexpr (sizeof(T) <= 8) {
        std::atomic_ref<T>(*reinterpret_cast<T*>(at)).store(value, std::memory_order_release);
    } else {
        const WideLock lock(at);
        std::memcpy(at, &value, sizeof(T));
    }
}

/// Atomically replaces the value at `at` by f(value). Returns the old value.
template <typename T, typename F>
T update_strong(std::byte* at, F&& f) noexcept
{
    if constexpr (sizeof(T) <= 8) {
        std::atomic_ref<T> place(*reinterpret_cast<T*>(at));
        T before = place.load(std::memory_order_acquire);
        while (true) {
            const T after = f(before);
            if (after == before && place.load(std::memory_order_acquire) == before) {
                return before;
            }
            if (place.compare_exchange_weak(before, after)) {
                return before;
            }
        }
    } else {
        const WideLock lock(at);
        T before;
        std::memcpy(&before, at, sizeof(T));
        const T after = f(before);
        std::memcpy(at, &after, sizeof(T));
        return before;
    }
}

}  // namespace tessera::emulator
