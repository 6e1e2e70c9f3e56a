#pragma once

// Pinned host memory that an asynchronous copy reads must not change before the copy is complete. A program that changes
// it earlier may be right today and wrong tomorrow, because it depends on when the copy runs. So the bytes are compared:
// as they were when the copy was enqueued, and when the program first learns that it is complete.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/host_stack.hpp"
#include "runtime/objects.hpp"
#include "runtime/queue.hpp"

namespace tessera::emulator {

class HostWatches {
public:
    /// A number made from the source's bytes. Call before the copy is enqueued.
    [[nodiscard]] static std::uint64_t sum_of(const CopyWork& copy) noexcept;
    /// `copy`, enqueued at `position` by the API function `name`, reads pinned host memory.
    void open(const char* name, const CopyWork& copy, const Position& position, std::uint64_t sum);
    /// The program has learned that work is complete: compares what the completed copies have read, and forgets them.
    void settle();
    /// [address, address + bytes) is written by a copy or a fill, or is freed: compares what overlaps, and forgets it.
    void close(const void* address, std::uint64_t bytes);

private:
    struct Watch {
        const char* name;
        CopyWork copy;
        Position position;
        std::uint64_t sum;
        HostStack caller;
        bool shared = false;  // a kernel has written host memory since: it may tell the program how far the stream is
    };
    void take_kernel_writes();
    template <typename Test>
    void settle_if(Test&& test);

    std::mutex mutex_;
    std::vector<Watch> watches_;
    std::atomic<bool> any_{false};
};

}  // namespace tessera::emulator
