// The instruction would read bf16 as f16.
// expect: "mma.sync multiplies elements of one type; only f8e4m3 and f8e5m2 may be mixed"
#include "tessera/device/mma_sync.cuh"

using namespace tessera;

#ifdef NEGATIVE
using B = bf16;
#else
using B = f16;
#endif

__device__ void multiply(FragmentC<float, 16, 8>& c, const FragmentA<f16, 16, 16>& a, const FragmentB<B, 8, 16>& b)
{
    mma(c, a, b);
}
