#pragma once

/// Kernels that read and write through views and shared tiles.

#include <cstdint>

#include "kernels.hpp"
#include "tessera/device/disjoint_span.cuh"
#include "tessera/tensor_map.hpp"

namespace tessera::test {

/// out = in + addend, for every element of every matrix. One CTA.
Kernel<BatchView<float>, BatchView<const float, ColumnMajor>, float> add_batches_kernel();

/// out = in, transposed: CTA (x, y) handles tile (y, x) of `in`, 8 x 8 elements or fewer at the edges.
Kernel<MatrixView<float>, MatrixView<const float>> transpose_tiles_kernel();

/// The same; each thread writes its own element of `out`.
Kernel<DisjointMatrix<float>, MatrixView<const float>> transpose_kernel();

/// The same with mdspans. One CTA.
Kernel<MatrixView<float>, MatrixView<const float>> transpose_mdspans_kernel();

/// Element (row, column) = row * columns + column, by a loop over the grid; needs no particular grid.
Kernel<DisjointMatrix<float, ColumnMajor>> number_kernel();

/// Ways to leave the bounds of a matrix of 4 x 6.
enum class Mistake : int { none, row_below, row_above, column_below, column_above, block, tile, batch, disjoint };

/// Makes the mistake. One thread.
Kernel<MatrixView<float>, Mistake> mistake_kernel();

/// What a producer does with the one slot of its ring.
enum class SlotMistake { none, dropped, filled_with_nothing };
/// Makes the mistake. One warp; compute capability 9.0.
Kernel<SlotMistake> misuse_slot_kernel();

inline constexpr unsigned tile_rows = 16;

/// (tile_rows, Bytes) elements.
template <class T, unsigned Bytes, Swizzle Pattern>
using TileMap = TensorMap<T, Box<Bytes / sizeof(T), tile_rows>, Pattern>;

/// Loads the box at (0, 0) of `in` with TMA and writes its elements to `seen`, row by row, in a SharedTile's order;
/// stores the tile with its rows reversed to `out`. `wrong` counts the 16-byte vectors that differ from their elements.
/// One warp; compute capability 9.0.
template <class Map>
Kernel<Map, Map, DeviceSpan<typename Map::element_type>, DeviceSpan<unsigned>> reverse_rows_kernel();

inline constexpr unsigned lone_rows = 8;
using LoneMap = TensorMap<float, Box<32, lone_rows>, Swizzle::b128>;

/// Copies a matrix of 32 columns, `lone_rows` rows at a time: a thread that is alone in its warp loads. 64 threads; compute
/// capability 9.0.
Kernel<LoneMap, DeviceSpan<float>> lone_loader_kernel();

}  // namespace tessera::test
