// The instruction would read bf16 as f16.
// expect: "mma.sp multiplies elements of one type; only floats of 8, 6 and 4 bits in bytes of their own may be mixed"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

#ifdef NEGATIVE
using B = bf16;
#else
using B = f16;
#endif

__device__ void multiply(FragmentC<float, 16, 8>& c, const SparseFragmentA<f16, 16, 16>& a,
                         const SparseMetadata<f16, 16>& metadata, const FragmentB<B, 8, 16>& b)
{
    mma(c, a, metadata, b);
}
