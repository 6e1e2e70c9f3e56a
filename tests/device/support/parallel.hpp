#pragma once

/// A parallel loop, for references that would otherwise need more time than the device.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tessera::test {

/// Calls `work(i)` for each i from 0 to count - 1, on several threads if there are enough operations to pay for them.
template <class Work>
void parallel_for(std::int64_t count, std::int64_t operations_each, const Work& work)
{
    constexpr std::int64_t worth_threads = 2'000'000;
    const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
    if (cores == 1 || count < 2 || count * operations_each < worth_threads) {
        for (std::int64_t i = 0; i < count; ++i) {
            work(i);
        }
        return;
    }
    const std::int64_t grain = std::max<std::int64_t>(1, count / (cores * 8));
    std::atomic<std::int64_t> next = 0;
    std::vector<std::jthread> threads;
    for (std::int64_t t = 0; t < std::min(cores, count); ++t) {
        threads.emplace_back([&] {
            for (std::int64_t begin = next.fetch_add(grain); begin < count; begin = next.fetch_add(grain)) {
                for (std::int64_t i = begin; i < std::min(begin + grain, count); ++i) {
                    work(i);
                }
            }
        });
    }
}

}  // namespace tessera::test
