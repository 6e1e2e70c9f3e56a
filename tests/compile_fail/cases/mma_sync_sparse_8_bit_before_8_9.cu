// Compute capability 8.0 has no 8-bit floats.
// expect: "mma.sp of 8-bit floats needs compute capability 8.9"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

__device__ void multiply(FragmentC<float, 16, 8>& c, const SparseFragmentA<f8e4m3, 16, 64>& a,
                         const SparseMetadata<f8e4m3, 64>& metadata, const FragmentB<f8e4m3, 8, 64>& b)
{
#ifdef NEGATIVE
    mma(c, a, metadata, b);
#else
    c[0] = static_cast<float>(a.words[0] + metadata.word + b.words[0]);
#endif
}
