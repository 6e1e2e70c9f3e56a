// The tensor core would read two elements of 8 bits as one.
// expect: "the tile's elements are larger or smaller than those that the instruction multiplies"
#include "tessera/device/wgmma.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned bytes = 1;
#else
constexpr unsigned bytes = 2;
#endif
using Operand = WgmmaDescriptor<SharedLayout<Major::k, Swizzle::b128, 64, 128 / bytes, bytes>>;

__device__ void multiply(float (&d)[32], Operand a, Operand b) { wgmma<WgmmaTypes::bf16, 64>(d, a, b, 1); }
