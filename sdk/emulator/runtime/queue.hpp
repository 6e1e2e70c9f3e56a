#pragma once

// Work that is done in order, on a thread of its own: what a stream is made of.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace tessera::emulator {

class Queue;

/// A place in a queue. It is reached when everything up to it is done.
struct Position {
    std::shared_ptr<Queue> queue;
    std::uint64_t sequence = 0;

    [[nodiscard]] bool is_reached() const;
    /// Blocks until it is reached.
    void wait() const;
};

/// Does what is enqueued in order, and the host goes on at once. The thread starts with the first work and ends when
/// there was none for a while. A queue that nobody holds any more still does what was enqueued.
class Queue : public std::enable_shared_from_this<Queue> {
public:
    /// Enqueues `work`, to be done after everything before it and after `waits`. A wait may only name a position that
    /// exists already, so queues cannot wait for each other in a circle.
    /// `is_instant`: it takes no time (the record of an event), so whoever sees the work before it done sees it done,
    /// too.
    Position enqueue(std::vector<Position> waits, std::function<void()> work, bool is_instant = false);

    /// The position of the latest work.
    [[nodiscard]] Position last();
    [[nodiscard]] bool is_idle();

private:
    friend struct Position;
    struct Item {
        std::vector<Position> waits;
        std::function<void()> work;
        bool is_instant = false;
    };
    void run();
    [[nodiscard]] static bool can_follow_at_once(const Item& item);

    std::mutex mutex_;
    std::condition_variable work_came_, work_done_;
    std::deque<Item> items_;
    std::uint64_t submitted_ = 0;
    std::atomic<std::uint64_t> done_{0};  ///< changed with the mutex held, read without: queues look at each other
    bool has_thread_ = false;
};

}  // namespace tessera::emulator
