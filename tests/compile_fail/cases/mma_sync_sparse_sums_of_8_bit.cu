// Compute capability 8.9 adds up sparse products of 8-bit floats in f32 alone.
// expect: "mma.sp of 8-bit floats with sums in f16 needs compute capability 12.x"
// architecture: "compute_89"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Sum = f16;
#else
using Sum = float;
#endif

__device__ void multiply(FragmentC<Sum, 16, 8>& c, const SparseFragmentA<f8e4m3, 16, 64>& a,
                         const SparseMetadata<f8e4m3, 64>& metadata, const FragmentB<f8e5m2, 8, 64>& b)
{
    mma(c, a, metadata, b);
}
