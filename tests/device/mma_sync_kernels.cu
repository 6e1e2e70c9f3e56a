#include "mma_sync_kernels.hpp"

#include "tessera/device/mma_sync.cuh"

namespace tessera::test {

namespace {

/// The first compute capability that has the instruction, as __CUDA_ARCH__.
template <class T, unsigned K>
constexpr int first_architecture = sizeof(T) == 1                     ? 890
                                   : std::is_same_v<T, f16> && K == 8 ? 750
                                                                      : 800;

#ifdef __CUDA_ARCH__
constexpr int architecture = __CUDA_ARCH__;
#else
constexpr int architecture = 0;
#endif

/// A tile of `Rows` rows of the matrix; transposed ones have a whole line of rows.
template <class T, unsigned Rows, Major MajorAxis, Swizzle Pattern>
using TileOf = std::conditional_t<MajorAxis == Major::k, SharedTile<T, Box<mma_k<T>, Rows>, Pattern>,
                                  SharedTile<T, Box<mma_line_bytes / sizeof(T), mma_k<T>>, Pattern>>;

template <unsigned Rows, Major MajorAxis, class T, class Tile>
__device__ void fill(Tile& tile, DeviceSpan<const T> matrix)
{
    for (unsigned i = threadIdx.x; i < Rows * mma_k<T>; i += 32) {
        const unsigned row = i / mma_k<T>;
        const unsigned k = i % mma_k<T>;
        (MajorAxis == Major::k ? tile(row, k) : tile(k, row)) = matrix[i];
    }
}

template <class A, class B, class D, unsigned K, Major MajorAxis, Swizzle Pattern>
__global__ void mma_sync_product(DeviceSpan<const A> a, DeviceSpan<const B> b, DeviceSpan<D> d)
{
    if constexpr (architecture >= first_architecture<A, K>) {
        __shared__ TileOf<A, mma_m, MajorAxis, Pattern> a_tile;
        __shared__ TileOf<B, mma_n, MajorAxis, Pattern> b_tile;
        fill<mma_m, MajorAxis>(a_tile, a);
        fill<mma_n, MajorAxis>(b_tile, b);
        __syncwarp();
        for (unsigned row = 0; row < mma_m; row += 16) {
            for (unsigned column = 0; column < mma_n; column += 8) {
                FragmentC<D, 16, 8> sums{};
                for (unsigned k = 0; k < mma_k<A>; k += K) {
                    mma(sums, load_matrix<FragmentA<A, 16, K>, MajorAxis>(a_tile, row, k),
                        load_matrix<FragmentB<B, 8, K>, MajorAxis>(b_tile, column, k));
                }
                for (unsigned i = 0; i < 4; ++i) {
                    d[(row + sums.row(i)) * mma_n + column + sums.column(i)] = sums[i];
                }
            }
        }
    } else {
        static_cast<void>(a);
        static_cast<void>(b);
        static_cast<void>(d);
    }
}

}  // namespace

template <class A, class B, class D, unsigned K, Major MajorAxis, Swizzle Pattern>
MmaSyncProduct<A, B, D> mma_sync_kernel()
{
    return mma_sync_product<A, B, D, K, MajorAxis, Pattern>;
}

#define TESSERA_TEST_INSTANTIATE(A, B, D, K, MAJOR, PATTERN) \
    template MmaSyncProduct<A, B, D> mma_sync_kernel<A, B, D, K, Major::MAJOR, Swizzle::PATTERN>();
#define TESSERA_TEST_INSTANTIATE_SWIZZLES(A, B, D, K, MAJOR) \
    TESSERA_TEST_INSTANTIATE(A, B, D, K, MAJOR, none)        \
    TESSERA_TEST_INSTANTIATE(A, B, D, K, MAJOR, b128)

TESSERA_TEST_INSTANTIATE_SWIZZLES(f16, f16, float, 8, k)
TESSERA_TEST_INSTANTIATE_SWIZZLES(f16, f16, float, 8, mn)
TESSERA_TEST_INSTANTIATE_SWIZZLES(f16, f16, f16, 8, k)
TESSERA_TEST_INSTANTIATE_SWIZZLES(f16, f16, float, 16, k)
TESSERA_TEST_INSTANTIATE_SWIZZLES(f16, f16, float, 16, mn)
TESSERA_TEST_INSTANTIATE_SWIZZLES(f16, f16, f16, 16, k)
TESSERA_TEST_INSTANTIATE_SWIZZLES(bf16, bf16, float, 16, k)
TESSERA_TEST_INSTANTIATE_SWIZZLES(bf16, bf16, float, 16, mn)
TESSERA_TEST_INSTANTIATE_SWIZZLES(tf32, tf32, float, 8, k)
TESSERA_TEST_INSTANTIATE_SWIZZLES(f8e4m3, f8e4m3, float, 32, k)
TESSERA_TEST_INSTANTIATE_SWIZZLES(f8e4m3, f8e5m2, float, 32, k)
TESSERA_TEST_INSTANTIATE_SWIZZLES(f8e5m2, f8e4m3, float, 32, k)
TESSERA_TEST_INSTANTIATE_SWIZZLES(f8e5m2, f8e5m2, float, 32, k)

}  // namespace tessera::test
