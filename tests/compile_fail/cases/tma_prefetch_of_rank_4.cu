// TMA with an L2 policy exists for matrices and batches of matrices only.
// expect: "tessera: TMA with a policy for L2 is of 2 or 3 dimensions"
#include "tessera/device/tma.cuh"

using namespace tessera;

__device__ void fetch(const AnyTensorMap<3>& matrices, const AnyTensorMap<4>& more)
{
#ifdef NEGATIVE
    tma_prefetch(more, {0, 0, 0, 0}, L2Policy::evict_first());
#else
    tma_prefetch(matrices, {0, 0, 0}, L2Policy::evict_first());
#endif
    static_cast<void>(matrices);
    static_cast<void>(more);
}
