#pragma once

/// SIMT kernels of other tiles than the ladder's: what is swept by `tessera-bench tiles --sweep`.

#include <vector>

namespace tessera::bench {

/// A kernel of fp32 whose only parameter is a `GemmArguments`: A is contiguous along K, B along N.
struct SimtTileKernel {
    int m;        ///< rows of D that a CTA computes
    int n;        ///< columns
    int k;        ///< of a step
    int threads;  ///< of a CTA
    const void* function;
};

/// Tiles of 8 to 128 rows and columns.
std::vector<SimtTileKernel> simt_tile_kernels();

}  // namespace tessera::bench
