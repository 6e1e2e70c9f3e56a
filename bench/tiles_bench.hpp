#pragma once

/// `tessera-bench tiles`: tile programs beside what they are compared with.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "problem/problem.hpp"
#include "tessera/device.hpp"

namespace tessera::bench {

struct TilesOptions {
    std::vector<Shape> shapes;          ///< of products
    std::vector<std::int64_t> lengths;  ///< of attention, in tokens; 16 heads
    std::int64_t rows = 8192;           ///< of 8192 elements each, for softmax and layer norm; 0: neither
    std::size_t rounds = 7;
    std::chrono::milliseconds sample{20};
    std::uint64_t seed = 1;
};

/// Prints the tables to standard output. bf16, all matrices row-major.
/// @throws std::runtime_error if a tile GEMM's result differs from that of `Gemm::launch`
void run_tiles(const Device& device, const TilesOptions& options);

}  // namespace tessera::bench
