// A commit of one CTA tracks nothing of a pair's instructions.
// expect: "one of ring and accumulator is a pair's, the other one CTA's"
#include "tessera/device/mma.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Ring = RingBarriers<FilledByTma, FreedByTensorCore, 2>;
#else
using Ring = RingBarriers<FilledByTma, FreedByTensorCore, 2, CtaGroup::pair>;
#endif

__device__ void free(ReadSlot<Ring>&& slot, const TmemAccumulator<128, CtaGroup::pair>& accumulator, ReadyCtas pair)
{
    release_after_mma(std::move(slot), accumulator, elect_one(), pair);
}
