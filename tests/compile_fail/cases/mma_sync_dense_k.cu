// A B for a sparse A has twice the K of a dense one.
// expect: "B must have the K of A; a FragmentB of twice that is for a sparse A"
// architecture: "compute_80"
#include "tessera/device/mma_sync.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned k = 32;
#else
constexpr unsigned k = 16;
#endif

__device__ void multiply(FragmentC<float, 16, 8>& c, const FragmentA<bf16, 16, 16>& a, const FragmentB<bf16, 8, k>& b)
{
    mma(c, a, b);
}
