#pragma once

/// Independent pieces of work on the host, on all processors.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace tessera::bench {

/// Calls `work(i)` once for each i in [0, count), from several threads, in any order. `work` must not throw.
template <class Work>
void for_each_in_parallel(std::size_t count, const Work& work)
{
    std::atomic<std::size_t> next = 0;
    const auto take = [&] {
        for (std::size_t i = next++; i < count; i = next++) {
            work(i);
        }
    };
    const std::size_t workers = std::min<std::size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < workers; ++i) {
        threads.emplace_back(take);
    }
    take();
}

}  // namespace tessera::bench
