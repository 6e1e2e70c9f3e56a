// One index for a box of two dimensions is ambiguous.
// expect: "tessera: an element of a shared tile has one index for each dimension of its box"
#include "tessera/device/tma.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ SharedTile<float, Box<32, 8>, Swizzle::b128> tile;
#ifdef NEGATIVE
    tile(threadIdx.x) = 0;
#else
    tile(1, threadIdx.x) = 0;
#endif
}
