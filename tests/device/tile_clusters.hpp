#pragma once

/// Products in clusters, which tile_clusters.cu compiles ahead of time.

#include <string>

#include "tessera/tessera.hpp"
#include "tessera/tile/launch_report.hpp"

namespace tessera::test {

/// The operands of a product, and where it goes.
struct ClusterProduct {
    MatrixView<const bf16> a;
    MatrixView<const bf16> b;
    MatrixView<bf16> d;
};

/// A program.
struct ClusterProgram {
    std::string name;
    int m, n;           // of a tile
    int rows, columns;  // of a cluster
    bool whole_tiles;
    bool is_refused;  // on Hopper: it runs in single CTAs
    int most_k;       // 0: any
    tile::LaunchReport (*launch)(StreamRef stream, const ClusterProduct& product);
    std::string type;  // in tile_clusters.cuh
    bool takes_k;      // behind its matrices
};

/// Returns how many programs there are.
int cluster_program_count();
/// Returns one of them.
const ClusterProgram& cluster_program(int index);

}  // namespace tessera::test
