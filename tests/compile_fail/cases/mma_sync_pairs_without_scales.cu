// Only block-scaled kinds take two elements in a byte.
// expect: "mma.sync without scale factors multiplies floats in bytes of their own, not f4e2m1x2"
// architecture: "compute_120a"
#include "tessera/device/mma_sync_scaled.cuh"

using namespace tessera;

#ifdef NEGATIVE
using T = f4e2m1x2;
#else
using T = f4e2m1;
#endif

__device__ void multiply(FragmentC<float, 16, 8>& c, const FragmentA<T, 16, detail::small_float_k<T>>& a,
                         const FragmentB<T, 8, detail::small_float_k<T>>& b)
{
    mma(c, a, b);
}
