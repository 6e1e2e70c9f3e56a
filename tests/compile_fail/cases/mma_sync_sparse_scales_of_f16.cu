// There is no instruction with factors for f16.
// expect: "only floats of 8, 6 and 4 bits have scale factors"
// architecture: "compute_120a"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

#ifdef NEGATIVE
using T = f16;
constexpr unsigned k = 32;
#else
using T = f6e3m2;
constexpr unsigned k = 64;
#endif

using ScaleA = ScaleFragmentA<ScaleType::ue8m0, ScaleVector::x1>;
using ScaleB = ScaleFragmentB<ScaleType::ue8m0, ScaleVector::x1>;

__device__ void multiply(FragmentC<float, 16, 8>& c, const SparseFragmentA<T, 16, k>& a,
                         const SparseMetadata<T, k>& metadata, const FragmentB<T, 8, k>& b, const ScaleA& a_scale,
                         const ScaleB& b_scale)
{
    mma(c, a, metadata, b, a_scale, b_scale);
}
