// Only block-scaled kinds take two elements in a byte.
// expect: "mma.sp without scale factors multiplies floats in bytes of their own, not f4e2m1x2"
// architecture: "compute_120a"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

#ifdef NEGATIVE
using T = f4e2m1x2;
#else
using T = f4e2m1;
#endif

constexpr unsigned k = 2 * detail::small_float_k<T>;

__device__ void multiply(FragmentC<float, 16, 8>& c, const SparseFragmentA<T, 16, k>& a,
                         const SparseMetadata<T, k>& metadata, const FragmentB<T, 8, k>& b)
{
    mma(c, a, metadata, b);
}
