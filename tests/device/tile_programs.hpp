#pragma once

/// Tile programs that the tests run: each is launched by a function of the host.

#include "tessera/tessera.hpp"
#include "tessera/tile/launch_report.hpp"

namespace tessera::test {

/// The shape of a product's tiles and what its CTA is.
enum class TileShape { large, small };

/// d = a * b + bias + c, by a tile program. The bias has a value for each column of d; c is like d.
/// @tparam A, B  element types of the operands
/// @tparam D     element type of c and d
template <class A, class B, class D, class OrderA, class OrderB, class OrderD>
tile::LaunchReport tile_product(StreamRef stream, TileShape shape, const BatchView<const A, OrderA>& a,
                                const BatchView<const B, OrderB>& b, const MatrixView<const float>& bias,
                                const BatchView<const D, OrderD>& c, const BatchView<D, OrderD>& d);

/// What a program of rows computes.
enum class RowProgram {
    scale,        // 2 * x + 1
    softmax,      // of each row
    normalize,    // each row: its mean is 0, its variance 1
    less_column,  // minus the mean of each column of a tile
    less_tile,    // minus the mean of all of a tile
    transposed,   // each tile is transposed and back again, times 2
    positions     // 1000 * row + column in the tile where x > 0, else x
};

/// y = program(x), by tiles of (rows, columns).
/// @tparam T        element type
/// @tparam Rows     of a tile
/// @tparam Columns  of a tile
template <class T, int Rows, int Columns>
void tile_rows(StreamRef stream, RowProgram program, const MatrixView<const T>& x, const MatrixView<T>& y);

/// z = softmax(q * k^T * scale) * v of each matrix of a batch, by a tile program: attention.
template <class T>
tile::LaunchReport tile_attention(StreamRef stream, const BatchView<const T>& q, const BatchView<const T>& k,
                                  const BatchView<const T>& v, const BatchView<T>& z, float scale, bool causal);

/// d = a * b, minus the mean of each column of a tile of (128, 128): sums of products that warps exchange.
void tile_centred_product(StreamRef stream, const MatrixView<const f16>& a, const MatrixView<const f16>& b,
                          const MatrixView<float>& d);

/// d = a * b with an epilogue of its own: max(value + of_column - of_row, of_element * (row % 3)), by `Gemm::launch`.
void own_epilogue(StreamRef stream, const BatchView<const f16>& a, const BatchView<const f16, ColumnMajor>& b,
                  const DeviceSpan<const float>& of_columns, const DeviceSpan<const f16>& of_rows,
                  const BatchView<const f16>& of_elements, const BatchView<float>& d);

/// y = the activation of x, by a tile program.
void tile_activation(StreamRef stream, Activation kind, const MatrixView<const float>& x, const MatrixView<float>& y);

/// d = gelu(a * b + bias), by `Gemm::launch` with the activation as an epilogue of its own.
void activated_product(StreamRef stream, const MatrixView<const f16>& a, const MatrixView<const f16>& b,
                       const DeviceSpan<const float>& bias, const MatrixView<float>& d);

/// What a program does with the sums of d = a * b.
enum class SumsProgram {
    product,                 // d = a * b
    without_pairs,           // the same, and its hints want no pairs of CTAs, but clusters of 4
    with_rows,               // each element and the number of its row
    held,                    // a is one tile wide, and held
    from_c,                  // the sums begin with c
    read_between_steps,      // d adds up the sums after each step
    replaced_between_steps,  // the sums change their sign after each step
    not_read,                // of two sums, one is not read
    copied,                  // d = 3 * a * b: sums that were read are copied, and products are added to both
    used_after_passed_on     // as read_between_steps, with sums that are passed on twice in each step
};

/// d = a * b, by a program that does more with its sums, in tiles of (M, N) and steps of 64.
template <int M, int N>
tile::LaunchReport tile_sums(StreamRef stream, SumsProgram program, const MatrixView<const f16>& a,
                             const MatrixView<const f16>& b, const MatrixView<const float>& c,
                             const MatrixView<float>& d);

/// What a program is compiled for.
enum class FixedProgram {
    whole,          // whole tiles, by its hints
    extents,        // matrices of (256, 96), (96, 128) and (256, 128), or of (8, 256)
    ragged_extents  // of (200, any), (80, 136) and (200, 136), or of (7, 250)
};

/// d = a * b + bias, in tiles of (128, 64) and steps of 32.
tile::LaunchReport tile_fixed_product(StreamRef stream, FixedProgram program, const MatrixView<const f16>& a,
                                      const MatrixView<const f16>& b, const MatrixView<const float>& bias,
                                      const MatrixView<float>& d);

/// y = 2 * x + 1, in tiles of (4, 128).
void tile_fixed_rows(StreamRef stream, FixedProgram program, const MatrixView<const float>& x,
                     const MatrixView<float>& y);

/// d = a' * b + c', where row i of a' and c' is row `rows[i]` of a and c.
tile::LaunchReport tile_gathered_product(StreamRef stream, const MatrixView<const f16>& a,
                                         const MatrixView<const f16>& b, const MatrixView<const float>& c,
                                         const DeviceSpan<const int>& rows, const MatrixView<float>& d);

/// Row i of y = row `rows[i]` of x.
void tile_gathered_rows(StreamRef stream, const MatrixView<const f16>& x, const DeviceSpan<const int>& rows,
                        const MatrixView<f16>& y);

/// d = a * b; adds the sums of its columns and of its rows over all matrices of the batch, and d two times.
tile::LaunchReport tile_totals(StreamRef stream, const BatchView<const f16>& a, const MatrixView<const f16>& b,
                               const BatchView<float>& d, const MatrixView<float>& columns,
                               const MatrixView<float>& rows, const BatchView<float>& twice);

/// d = a * a, by a program that holds five tiles at once: more than it may.
void tile_holds_five(StreamRef stream, const MatrixView<const f16>& a, const MatrixView<f16>& d);

}  // namespace tessera::test
