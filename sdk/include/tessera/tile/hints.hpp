#pragma once

/// @file
/// @ingroup tile_programs
/// @brief `Hints`: what a program may say of the CTA that runs it.

#include "tessera/detail/language.hpp"

namespace tessera::tile {

/// What a program says of the CTAs that it wants. 0 leaves a choice to the library.
struct Hints {
    int warpgroups =
        2;            ///< on Hopper, warpgroups that multiply: each has a multiple of 64 rows of a tile. On Blackwell,
                      ///< warpgroups that compute: each has an equal part of a tile's columns
    int warps_m = 4;  ///< warps along the rows of a tile that mma.sync multiplies
    int warps_n = 2;  ///< warps along its columns
    int stages = 0;   ///< steps that are loaded ahead; 0: as many as fit into shared memory, up to 8
    /// The program's matrices are whole tiles, and there are as many of an input as of the output: nothing in the kernel is compared
    /// with the end of a matrix. The launch checks the matrices, and throws for others.
    bool whole_tiles = false;
    /// CTAs of a cluster that share what they load: 1, 2, 4 or 8; 0 leaves it to the library. 1 wants no clusters, and no pairs. Each
    /// loads a part of what several stream, for all of them. On Blackwell, a cluster is one, two or four pairs. The report of a launch
    /// says why a program does not run in the clusters that it wants.
    int cluster = 0;
    /// CTAs of a cluster that have places beside each other, in one row of tiles. On Blackwell, those of a pair are above each other.
    int cluster_columns = 1;
    bool pairs = true;  ///< on Blackwell, two CTAs multiply together where they can: each loads half of B for both
};

}  // namespace tessera::tile
