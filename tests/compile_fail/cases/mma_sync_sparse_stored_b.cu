// B is not compressed.
// expect: "B must have the K of the sparse A, which counts the zeros that are not stored"
// architecture: "compute_89"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned k = 32;
#else
constexpr unsigned k = 64;
#endif

__device__ void multiply(FragmentC<float, 16, 8>& c, const SparseFragmentA<f8e4m3, 16, 64>& a,
                         const SparseMetadata<f8e4m3, 64>& metadata, const FragmentB<f8e4m3, 8, k>& b)
{
    mma(c, a, metadata, b);
}
