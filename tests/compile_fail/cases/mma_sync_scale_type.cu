// There is no instruction with two factors of ue4m3.
// expect: "f4e2m1x2 has two ue8m0 or four ue4m3 factors of a row"
// architecture: "compute_120a"
#include "tessera/device/mma_sync_scaled.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr ScaleType type = ScaleType::ue4m3;
#else
constexpr ScaleType type = ScaleType::ue8m0;
#endif

__device__ void multiply(FragmentC<float, 16, 8>& c, const FragmentA<f4e2m1x2, 16, 64>& a,
                         const FragmentB<f4e2m1x2, 8, 64>& b, const ScaleFragmentA<type, ScaleVector::x2>& a_scale,
                         const ScaleFragmentB<type, ScaleVector::x2>& b_scale)
{
    mma(c, a, b, a_scale, b_scale);
}
