// Compute capability 8.0 has no 6-bit floats.
// expect: "needs compute capability 12.x and a target such as sm_120a or sm_120f"
#include "tessera/device/mma_sync_scaled.cuh"

using namespace tessera;

__device__ void multiply(FragmentC<float, 16, 8>& c, const FragmentA<f6e2m3, 16, 32>& a,
                         const FragmentB<f6e2m3, 8, 32>& b)
{
#ifdef NEGATIVE
    mma(c, a, b);
#else
    c[0] += static_cast<float>(a.words[0] + b.words[0]);
#endif
}
