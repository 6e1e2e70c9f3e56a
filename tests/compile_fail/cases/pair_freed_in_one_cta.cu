// The second CTA would wait forever for its stage.
// expect: "both CTAs of a pair wait for its products: name them"
#include "tessera/device/mma.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByTensorCore, 2, CtaGroup::pair>;

__device__ void free(ReadSlot<Ring>&& slot, const TmemAccumulator<128, CtaGroup::pair>& accumulator, ReadyCtas pair)
{
#ifdef NEGATIVE
    release_after_mma(std::move(slot), accumulator, elect_one());
#else
    release_after_mma(std::move(slot), accumulator, elect_one(), pair);
#endif
}
