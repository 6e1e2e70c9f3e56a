// A quad has two pairs of lanes.
// expect: "in the first (0) or second (1) pair of each four lanes"
#include "tessera/device/mma_sync_scaled.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned pair = 2;
#else
constexpr unsigned pair = 1;
#endif

__device__ unsigned word(const ScaleFragmentA<ScaleType::ue8m0, ScaleVector::x1, 0, pair>& scale) { return scale.word; }
