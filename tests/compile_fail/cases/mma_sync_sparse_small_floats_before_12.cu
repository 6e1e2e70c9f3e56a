// Compute capability 8.9 has no 6-bit floats.
// expect: "needs compute capability 12.x and a target such as sm_120a or sm_120f"
// architecture: "compute_89"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

__device__ void multiply(FragmentC<float, 16, 8>& c, const SparseFragmentA<f8e4m3, 16, 64>& a,
                         const SparseMetadata<f8e4m3, 64>& metadata, const FragmentB<f6e2m3, 8, 64>& b)
{
#ifdef NEGATIVE
    mma(c, a, metadata, b);
#else
    c[0] = static_cast<float>(a.words[0] + metadata.word + b.words[0]);
#endif
}
