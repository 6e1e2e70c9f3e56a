#pragma once

/// `tessera-bench launch`: what Gemm::launch costs the CPU beyond the cudaLaunchKernelExC inside of it.

#include <cstddef>
#include <cstdint>
#include <string>

#include "report/report.hpp"
#include "tessera/device.hpp"

namespace tessera::bench {

/// So many launches can wait for the device without blocking the host, which would be timed otherwise.
inline constexpr std::size_t max_outstanding_launches = 500;

struct LaunchOptions {
    Shape shape{32, 32, 32};
    std::size_t launches_per_sample = 256;  ///< at most max_outstanding_launches
    std::size_t rounds = 200;
    std::uint64_t seed = 1;
};

std::string describe_launch_method(const LaunchOptions& options);

/// @throws std::runtime_error if a launch gives a wrong product, or the raw launch is not the one inside of
/// Gemm::launch
LaunchReport run_launch(const Device& device, const LaunchOptions& options);

}  // namespace tessera::bench
