// ldmatrix exchanges rows and columns of 16-bit elements.
// expect: "ldmatrix transposes 16-bit elements only: a tile of other elements must be K-major"
#include "tessera/device/mma_sync.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr Major major = Major::mn;
#else
constexpr Major major = Major::k;
#endif
using Tile = SharedTile<f8e4m3, Box<128, 32>, Swizzle::b128>;

__device__ unsigned first_word(const Tile& tile)
{
    return load_matrix<FragmentA<f8e4m3, 16, 32>, major>(tile, 0, 0).words[0];
}
