#pragma once

/// Products by pairs of CTAs, which tile_pairs.cu compiles ahead of time.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/tessera.hpp"
#include "tessera/tile/launch_report.hpp"

namespace tessera::test {

/// The operands of a product. B is as its program has it, row-major or column-major; D is row-major.
template <class T>
struct PairProduct {
    MatrixView<const T> a;
    MatrixView<const T> b;                // row-major, or
    MatrixView<const T, ColumnMajor> bt;  // column-major
    MatrixView<float> d;
};

/// A program.
template <class T>
struct PairProgram {
    std::string name;
    std::string type;  // in tile_pairs.cuh
    int n;             // columns of a tile
    bool b_is_column_major;
    int cluster;  // CTAs of it; 2 without a wish
    tile::LaunchReport (*launch)(StreamRef stream, const PairProduct<T>& product);
};

/// Returns the programs for elements of a type.
template <class T>
std::vector<PairProgram<T>> pair_programs();

}  // namespace tessera::test
