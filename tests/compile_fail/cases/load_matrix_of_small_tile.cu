// The instruction would read what follows the tile.
// expect: "the tile is smaller than the fragment"
#include "tessera/device/mma_sync.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned rows = 8;
#else
constexpr unsigned rows = 16;
#endif
using Tile = SharedTile<f16, Box<64, rows>, Swizzle::b128>;

__device__ unsigned first_word(const Tile& tile) { return load_matrix<FragmentA<f16, 16, 16>>(tile, 0, 0).words[0]; }
