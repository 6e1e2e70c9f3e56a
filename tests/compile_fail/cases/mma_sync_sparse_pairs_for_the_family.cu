// PTX has the instructions of f4e2m1x2 for one device, not for its family.
// expect: "mma.sync of f4e2m1x2 needs compute capability 12.x and a target such as sm_120a"
// architecture: "compute_120f"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

using ScaleA = ScaleFragmentA<ScaleType::ue4m3, ScaleVector::x4>;
using ScaleB = ScaleFragmentB<ScaleType::ue4m3, ScaleVector::x4>;

__device__ void multiply(FragmentC<float, 16, 8>& c, const SparseFragmentA<f4e2m1x2, 16, 128>& a,
                         const SparseMetadata<f4e2m1x2, 128>& metadata, const FragmentB<f4e2m1x2, 8, 128>& b,
                         const ScaleA& a_scale, const ScaleB& b_scale)
{
#ifdef NEGATIVE
    mma(c, a, metadata, b, a_scale, b_scale);
#else
    c[0] += static_cast<float>(a.words[0] + metadata.word + b.words[0] + a_scale.word + b_scale.word);
#endif
}
