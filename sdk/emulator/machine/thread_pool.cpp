#include "machine/thread_pool.hpp"

#include <algorithm>
#include <system_error>
#include <thread>

namespace tessera::emulator {

ThreadPool& ThreadPool::instance()
{
    static ThreadPool* const pool = new ThreadPool;
    return *pool;
}

void ThreadPool::run(unsigned helpers, const std::function<void()>& work)
{
    Job job{work, helpers};
    {
        const std::scoped_lock lock(mutex_);
        try {
            for (; threads_ < helpers; ++threads_) {
                std::thread([this] { help(); }).detach();
            }
        } catch (const std::system_error&) {
            // The process may have no more threads: the others, or the caller alone, do the work.
        }
        jobs_.push_back(&job);
    }
    wake_.notify_all();
    work();
    std::unique_lock lock(mutex_);
    jobs_.remove(&job);
    done_.wait(lock, [&] { return job.running == 0; });
}

void ThreadPool::help()
{
    std::unique_lock lock(mutex_);
    while (true) {
        const auto found = std::ranges::find_if(jobs_, [](const Job* job) { return job->wanted > 0; });
        if (found == jobs_.end()) {
            wake_.wait(lock);
            continue;
        }
        Job& job = **found;
        --job.wanted;
        ++job.running;
        lock.unlock();
        job.work();
        lock.lock();
        if (--job.running == 0) {
            done_.notify_all();
        }
    }
}

}  // namespace tessera::emulator
