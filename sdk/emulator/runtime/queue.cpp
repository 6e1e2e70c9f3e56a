#include "runtime/queue.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace tessera::emulator {

namespace {

constexpr std::chrono::milliseconds idle_time{100};

}  // namespace

bool Position::is_reached() const
{
    return queue == nullptr || queue->done_.load(std::memory_order_acquire) >= sequence;
}

void Position::wait() const
{
    if (queue != nullptr) {
        std::unique_lock lock(queue->mutex_);
        queue->work_done_.wait(lock, [this] { return queue->done_ >= sequence; });
    }
}

Position Queue::enqueue(std::vector<Position> waits, std::function<void()> work, bool is_instant)
{
    std::erase_if(waits, [this](const Position& wait) { return wait.queue.get() == this || wait.is_reached(); });
    const std::scoped_lock lock(mutex_);
    items_.push_back({std::move(waits), std::move(work), is_instant});
    ++submitted_;
    if (!has_thread_) {
        try {
            // The thread holds the queue, which must outlive its work.
            std::thread([self = shared_from_this()] { self->run(); }).detach();
        } catch (...) {
            // Work that nobody does must not be waited for. Without a thread the queue had no other work.
            items_.pop_back();
            --submitted_;
            throw;
        }
        has_thread_ = true;
    }
    work_came_.notify_one();
    return {shared_from_this(), submitted_};
}

Position Queue::last()
{
    const std::scoped_lock lock(mutex_);
    return {shared_from_this(), submitted_};
}

bool Queue::is_idle()
{
    const std::scoped_lock lock(mutex_);
    return done_ == submitted_;
}

bool Queue::can_follow_at_once(const Item& item)
{
    return item.is_instant && std::ranges::all_of(item.waits, [](const Position& wait) { return wait.is_reached(); });
}

void Queue::run()
{
    std::unique_lock lock(mutex_);
    while (true) {
        if (items_.empty() && !work_came_.wait_for(lock, idle_time, [this] { return !items_.empty(); })) {
            has_thread_ = false;
            return;
        }
        std::uint64_t finished = 0;
        do {
            Item item = std::move(items_.front());
            items_.pop_front();
            lock.unlock();
            for (const Position& wait : item.waits) {
                wait.wait();
            }
            item.work();
            item = {};  // release what it holds before anyone sees it complete
            lock.lock();
            ++finished;
        } while (!items_.empty() && can_follow_at_once(items_.front()));
        done_.fetch_add(finished, std::memory_order_release);
        work_done_.notify_all();
    }
}

}  // namespace tessera::emulator
