#pragma once

/// `tessera-bench tiles`: tile programs beside what they are compared with.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "method/timer.hpp"
#include "problem/problem.hpp"
#include "tessera/device.hpp"

namespace tessera::bench {

inline constexpr float bf16_tolerance = 0.01F;  ///< a unit in the last place, or what cancels of sums of some hundred
inline constexpr std::size_t rotated_bytes = std::size_t{300} << 20U;  ///< of operands: several times what L2 holds

struct TilesOptions {
    std::vector<Shape> shapes;          ///< of products
    std::vector<std::int64_t> lengths;  ///< of attention, in tokens; 16 heads
    std::int64_t rows = 8192;           ///< of 8192 elements each, for softmax and layer norm; 0: neither
    std::size_t rounds = 7;
    std::chrono::milliseconds sample{20};
    std::uint64_t seed = 1;
    bool compare_whole_tiles = false;  ///< instead: programs with bounds checks and without
    bool epilogues = false;            ///< instead: epilogues of one's own beside the library's
    std::string sweep;                 ///< instead: a sweep of tiles, for the first shape; a file for its charts
};

/// Prints the tables to standard output. bf16, all matrices row-major.
/// @throws std::runtime_error if a tile GEMM's result differs from that of `Gemm::launch`
void run_tiles(const Device& device, const TilesOptions& options);

/// Sweeps the tiles of a product: of a tile program in bf16, which is compiled at run time, and of the SIMT kernels in fp32. Prints
/// tables, and writes charts to a file.
/// @throws std::runtime_error if a result differs from that of `Gemm::launch`, or the file cannot be written
void run_tile_sweep(const Device& device, const TilesOptions& options);

/// Measures products with an epilogue of one's own beside those with the library's, and prints a table. bf16, B column-major.
/// @throws std::runtime_error if a result differs
void run_own_epilogues(const Device& device, const TilesOptions& options);

/// Throws std::runtime_error if results differ by more than sums in another order do.
/// @param tolerance  relative, and absolute
template <class T>
void require_close(const std::vector<T>& found, const std::vector<T>& expected, float tolerance,
                   const std::string& name);

/// Returns the median seconds per launch of each contender, in rounds.
std::vector<double> median_seconds(const DeviceTimer& timer, StreamRef stream, const TilesOptions& options,
                                   const std::vector<Contender>& contenders, std::size_t sets);

}  // namespace tessera::bench
