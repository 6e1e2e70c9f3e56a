// The instruction would take one byte of the two.
// expect: "floats in bytes of their own have one ue8m0 factor of a row"
// architecture: "compute_120a"
#include "tessera/device/mma_sync_scaled.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr ScaleVector vector = ScaleVector::x2;
#else
constexpr ScaleVector vector = ScaleVector::x1;
#endif

__device__ void multiply(FragmentC<float, 16, 8>& c, const FragmentA<f6e3m2, 16, 32>& a,
                         const FragmentB<f8e4m3, 8, 32>& b, const ScaleFragmentA<ScaleType::ue8m0, vector>& a_scale,
                         const ScaleFragmentB<ScaleType::ue8m0, vector>& b_scale)
{
    mma(c, a, b, a_scale, b_scale);
}
