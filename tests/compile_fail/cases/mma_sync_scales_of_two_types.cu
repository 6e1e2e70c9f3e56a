// The instruction has one type for the factors of A and B.
// expect: "the scale factors of A and B must have the same type and number"
// architecture: "compute_120a"
#include "tessera/device/mma_sync_scaled.cuh"

using namespace tessera;

#ifdef NEGATIVE
using ScaleB = ScaleFragmentB<ScaleType::ue8m0, ScaleVector::x2>;
#else
using ScaleB = ScaleFragmentB<ScaleType::ue4m3, ScaleVector::x4>;
#endif

__device__ void multiply(FragmentC<float, 16, 8>& c, const FragmentA<f4e2m1x2, 16, 64>& a,
                         const FragmentB<f4e2m1x2, 8, 64>& b,
                         const ScaleFragmentA<ScaleType::ue4m3, ScaleVector::x4>& a_scale, const ScaleB& b_scale)
{
    mma(c, a, b, a_scale, b_scale);
}
