// Turing has no sparse products.
// expect: "mma.sp needs compute capability 8.0"
// architecture: "compute_75"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

__device__ void multiply(FragmentC<float, 16, 8>& c, const SparseFragmentA<f16, 16, 16>& a,
                         const SparseMetadata<f16, 16>& metadata, const FragmentB<f16, 8, 16>& b)
{
#ifdef NEGATIVE
    mma(c, a, metadata, b);
#else
    c[0] = static_cast<float>(a.words[0] + metadata.word + b.words[0]);
#endif
}
