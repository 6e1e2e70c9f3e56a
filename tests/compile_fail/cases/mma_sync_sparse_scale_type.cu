// There is no instruction with two factors of ue4m3.
// expect: "f4e2m1x2 has two ue8m0 or four ue4m3 factors of a row"
// architecture: "compute_120a"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr ScaleType type = ScaleType::ue4m3;
#else
constexpr ScaleType type = ScaleType::ue8m0;
#endif

using ScaleA = ScaleFragmentA<type, ScaleVector::x2>;
using ScaleB = ScaleFragmentB<type, ScaleVector::x2>;

__device__ void multiply(FragmentC<float, 16, 8>& c, const SparseFragmentA<f4e2m1x2, 16, 128>& a,
                         const SparseMetadata<f4e2m1x2, 128>& metadata, const FragmentB<f4e2m1x2, 8, 128>& b,
                         const ScaleA& a_scale, const ScaleB& b_scale)
{
    mma(c, a, metadata, b, a_scale, b_scale);
}
