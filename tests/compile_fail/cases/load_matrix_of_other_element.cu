// A fragment of f16 made of bf16's bits.
// expect: "the tile's elements are not the fragment's"
#include "tessera/device/mma_sync.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Element = bf16;
#else
using Element = f16;
#endif
using Tile = SharedTile<Element, Box<64, 16>, Swizzle::b128>;

__device__ unsigned first_word(const Tile& tile) { return load_matrix<FragmentA<f16, 16, 16>>(tile, 0, 0).words[0]; }
