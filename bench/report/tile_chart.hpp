#pragma once

/// The charts of `tessera-bench tiles --sweep`: the rate of a product by the tile that a CTA computes.

#include <string>
#include <string_view>
#include <vector>

namespace tessera::bench {

/// A tile, and how fast a product is with it.
struct TileRate {
    int m = 0;                    ///< rows of D
    int n = 0;                    ///< columns of D
    int k = 0;                    ///< of a step
    double flops_per_second = 0;  ///< 0: it was not run
    std::string note;             ///< why not
};

/// Rates by rows and columns of the tile, for one step along K: an SVG element. Darker is faster, of all `rates`.
std::string tile_chart(const std::vector<TileRate>& rates, int k, std::string_view label);

/// The head of a table of rates, in Markdown.
inline constexpr std::string_view tile_head = "| tile | TFLOP/s |\n|---|---|\n";
/// A row of it.
std::string tile_row(const TileRate& rate);

}  // namespace tessera::bench
