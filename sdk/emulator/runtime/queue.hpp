#pragma once

// Work executed in order on its own thread: the basis of a stream.

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

/// A position in a queue. It is reached when all work up to it is complete.
struct Position {
    std::shared_ptr<Queue> queue;
    std::uint64_t sequence = 0;

    [[nodiscard]] bool is_reached() const;
    /// Blocks until it is reached.
    void wait() const;
};

/// Executes enqueued work in order while the host continues. The thread starts with the first work and ends after a
/// time without work. A queue without owners still completes its work.
class Queue : public std::enable_shared_from_this<Queue> {
public:
    /// Enqueues `work` after everything before it and after `waits`. A wait may only name an existing position, so
    /// queues cannot wait for each other in a circle.
    /// `is_instant`: the work takes no time (the record of an event), so anyone who sees the work before it complete
    /// also sees it complete.
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
