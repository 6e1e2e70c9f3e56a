// Threads complete that barrier; a commit of the tensor core would be one arrival too many.
// expect: "the tensor core commits to a barrier that is FreedByTensorCore or AccumulatorFull"
#include "tessera/device/mma.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Kind = AccumulatorEmpty;
#else
using Kind = AccumulatorFull;
#endif

__device__ void finish(const TmemAccumulator<128, CtaGroup::one>& d, const Barrier<Kind>& barrier)
{
    commit(d, barrier);
}
