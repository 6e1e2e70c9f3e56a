#pragma once

/// Measures several ways to launch one kernel against each other.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "launch_bench.hpp"

namespace tessera::bench {

/// A way to launch. The loop is inside the function, so that no indirect call per launch is timed.
struct Way {
    std::string name;
    std::function<void(std::size_t launches)> launch;
    bool is_limited = true;  ///< see LaunchMeasurement
};

template <class Launch>
Way way(std::string name, Launch& launch)
{
    return {std::move(name), [&launch](std::size_t launches) {
                for (std::size_t i = 0; i < launches; ++i) {
                    launch();
                }
            }};
}

/// Returns the times of all ways, each of which has been used before. `wait` waits for the device.
std::vector<LaunchMeasurement> measure(const std::vector<Way>& ways, const LaunchOptions& options,
                                       const std::function<void()>& wait);

/// Measures the tensor-core variants of the device.
void run_tensor_core_launches(const Device& device, const LaunchOptions& options,
                              const std::function<void(const LaunchReport&)>& take);

}  // namespace tessera::bench
