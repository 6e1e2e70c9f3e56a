#pragma once

/// `tessera-bench launch`: measures how much CPU time Gemm::launch adds to the cudaLaunchKernelExC in it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "report/report.hpp"
#include "tessera/device.hpp"

namespace tessera::bench {

/// This many launches can wait for the device without blocking the host; blocking would be timed, too.
inline constexpr std::size_t max_outstanding_launches = 500;

struct LaunchOptions {
    Shape shape{32, 32, 32};
    std::size_t launches_per_sample = 256;  ///< at most max_outstanding_launches
    std::size_t rounds = 200;
    std::uint64_t seed = 1;
};

std::string describe_launch_method(const LaunchOptions& options);

/// Measures a SIMT kernel with `options.shape`, then each tensor-core variant of the device in its kinds of
/// configurations, with small products of bf16. `take` gets one report after the other.
/// @throws std::runtime_error if a launch gives a wrong product, or if the raw launch differs from the one in
/// Gemm::launch
void run_launch(const Device& device, const LaunchOptions& options,
                const std::function<void(const LaunchReport&)>& take);

}  // namespace tessera::bench
