#pragma once

/// @file
/// @brief Base of tokens that must be spent, once. Private to the SDK.

#include "tessera/detail/language.hpp"

#include <cuda/std/cassert>  // declares __assert_fail with NDEBUG, too

#ifdef __CUDACC_RTC__
/// What nvcc compiles it to. Compiled at run time, there is no C library that declares it.
__device__ __forceinline__ void __assert_fail(const char* message, const char* file, unsigned line,
                                              const char* function)
{
    __assertfail(message, file, line, function, sizeof(char));
}
#endif

namespace tessera::detail {

/// Stops the kernel with a message. A function of its own for its name in traces and profiles, and to keep it away from
/// the code that calls it. Where no slot can be dropped, there is no call.
__device__ __noinline__ inline void slot_was_dropped_without_publish_or_release()
{
    __assert_fail(
        "tessera: a slot of a ring was dropped: publish() each slot from acquire(), release() each slot from wait()",
        "tessera/device/pipeline.cuh", __LINE__, "slot_was_dropped_without_publish_or_release");
    __trap();
}

/// The same for a slot that consumers would wait for, and into which nothing is loaded.
__device__ __noinline__ inline void slot_was_filled_with_nothing()
{
    __assert_fail("tessera: no load was issued in fill(): the consumers of this slot would wait forever",
                  "tessera/device/pipeline.cuh", __LINE__, "slot_was_filled_with_nothing");
    __trap();
}

/// The same for an accumulator that is not released, for which the tensor core would wait.
__device__ __noinline__ inline void accumulator_was_not_released()
{
    __assert_fail("tessera: an accumulator was not released: call release() when its last columns are loaded",
                  "tessera/device/accumulator.cuh", __LINE__, "accumulator_was_not_released");
    __trap();
}

/// The same for tensor memory that is not released on a way out of the kernel.
__device__ __noinline__ inline void tensor_memory_was_not_released()
{
    __assert_fail("tessera: tensor memory was not released: call release() on every way out of the kernel",
                  "tessera/device/tmem.cuh", __LINE__, "tensor_memory_was_not_released");
    __trap();
}

/// The same for tensor memory that is used although it was released or moved from.
__device__ __noinline__ inline void tensor_memory_was_released_or_moved_from()
{
    __assert_fail("tessera: this tensor memory was released or moved from: it has no address any more",
                  "tessera/device/tmem.cuh", __LINE__, "tensor_memory_was_released_or_moved_from");
    __trap();
}

/// A token that must be spent by `fulfil`, or moved to another.
/// @tparam Stop  called if it is dropped
template <void (*Stop)()>
class Obligation {
public:
    Obligation(const Obligation&) = delete;
    Obligation& operator=(const Obligation&) = delete;
    __device__ Obligation(Obligation&& other) noexcept : open_(other.open_) { other.open_ = false; }
    __device__ Obligation& operator=(Obligation&& other) noexcept
    {
        if (open_) {
            Stop();
        }
        open_ = other.open_;
        other.open_ = false;
        return *this;
    }
    __device__ ~Obligation()
    {
        if (open_) {
            Stop();
        }
    }

protected:
    __device__ Obligation() {}
    __device__ void fulfil() { open_ = false; }
    __device__ bool is_open() const { return open_; }

private:
    bool open_ = true;
};

}  // namespace tessera::detail
