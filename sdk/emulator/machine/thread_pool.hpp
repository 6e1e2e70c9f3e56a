#pragma once

// The CPU threads that all launches of the process share.

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>

namespace tessera::emulator {

/// Threads are created when they are first wanted, and stay: creating them for each launch costs more than a small
/// launch itself. Concurrent launches share them, so that they do not run more threads than the largest of them wants.
class ThreadPool {
public:
    /// The pool of the process. It is never destroyed: a launch may still run while the process exits.
    static ThreadPool& instance();

    /// Calls `work` on the calling thread and, as far as they are free, on up to `helpers` others. Returns when all
    /// calls have returned. `work` must not throw, and must do all of the work with any number of other threads.
    void run(unsigned helpers, const std::function<void()>& work);

private:
    struct Job {
        const std::function<void()>& work;
        unsigned wanted;  ///< helpers that may still join
        unsigned running = 0;
    };
    void help();

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::list<Job*> jobs_;
    unsigned threads_ = 0;
};

}  // namespace tessera::emulator
