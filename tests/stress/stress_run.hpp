#pragma once

/// The loop of the stress test.

#include <cstdint>
#include <optional>

#include "random_product.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::test {

struct StressOptions {
    std::uint64_t count = 1000;
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> only;     ///< this product instead of the first `count`
    Variant variant = Variant::automatic;  ///< that each product is launched with
    std::uint64_t candidates = 3;          ///< more kernels and configurations per product
    ProductLimits limits;
    double time_limit_seconds = 0;  ///< 0: no limit
    std::uint64_t most_failures = 10;
    bool self_test = false;  ///< each result is damaged after it was found right
};

/// Runs the products and prints what was run and what was wrong. Returns true if nothing was wrong; in a self-test, if
/// every damage was found.
bool run_stress(const StressOptions& options);

}  // namespace tessera::test
