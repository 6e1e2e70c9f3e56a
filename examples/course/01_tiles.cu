// Chapter 1: threads and tiles. D = A * B^T, with threads only.
#include <tessera/device/disjoint_span.cuh>

#include "course/course.hpp"

using namespace tessera;

// [by_element]
/// One thread for each element of D.
__global__ void by_element(MatrixView<const bf16> a, MatrixView<const bf16> b, DisjointMatrix<float> d)
{
    const auto index = ThreadIndex2D::in_grid();
    float sum = 0;
    for (int k = 0; k < a.columns(); ++k) {
        sum += float(a(index.row(), k)) * float(b(index.column(), k));
    }
    d[index] = sum;
}
// [end]

// [by_tile]
constexpr int tile = 64;    // a CTA computes (64, 64) elements of D
constexpr int tile_k = 16;  // and steps along K by 16
constexpr int side = 4;     // a thread computes (4, 4) of them: 16 x 16 threads

/// One CTA for each tile of D.
__global__ void by_tile(MatrixView<const bf16> a, MatrixView<const bf16> b, MatrixView<float> d)
{
    __shared__ float a_tile[tile][tile_k];
    __shared__ float b_tile[tile][tile_k];
    const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
    const int row = static_cast<int>(blockIdx.y) * tile, column = static_cast<int>(blockIdx.x) * tile;

    float sums[side][side]{};
    for (int k = 0; k < a.columns(); k += tile_k) {
        for (int i = y; i < y + tile; i += 16) {  // each thread brings four elements of A and four of B
            a_tile[i][x] = float(a(row + i, k + x));
            b_tile[i][x] = float(b(column + i, k + x));
        }
        __syncthreads();
        for (int l = 0; l < tile_k; ++l) {
            for (int i = 0; i < side; ++i) {
                for (int j = 0; j < side; ++j) {
                    sums[i][j] += a_tile[y + 16 * i][l] * b_tile[x + 16 * j][l];
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < side; ++i) {
        for (int j = 0; j < side; ++j) {
            d(row + y + 16 * i, column + x + 16 * j) = sums[i][j];
        }
    }
}
// [end]

// [main]
int main()
{
    const int status = course::multiply_and_check("by_element", 256, 256, 256, [](course::Product& p) {
        const DisjointMatrix d(p.d());
        launch(by_element, LaunchConfig::covering(p.stream, d), p.a(), p.b(), d);
    });
    if (status != 0) {
        return status;
    }
    return course::multiply_and_check("by_tile", 256, 256, 256, [](course::Product& p) {
        launch(by_tile, LaunchConfig(p.stream, {256 / tile, 256 / tile}, {16, 16}), p.a(), p.b(), p.d());
    });
}
// [end]
