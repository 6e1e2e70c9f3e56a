// Products of bf16 exceed f16.
// expect: "mma.sp adds up products of bf16 and tf32 in f32 only"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Sum = f16;
#else
using Sum = float;
#endif

__device__ void multiply(FragmentC<Sum, 16, 8>& c, const SparseFragmentA<bf16, 16, 16>& a,
                         const SparseMetadata<bf16, 16>& metadata, const FragmentB<bf16, 8, 16>& b)
{
    mma(c, a, metadata, b);
}
