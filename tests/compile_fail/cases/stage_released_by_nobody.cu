// The tensor core frees a stage, if somebody commits to its barrier.
// expect: "the tensor core frees this slot when it has read it: release_after_mma()"
#include "tessera/device/mma.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByTensorCore, 2>;

__device__ void skip(RingConsumer<Ring>& consumer, const TmemAccumulator<128, CtaGroup::one>& accumulator)
{
    auto slot = consumer.wait();
#ifdef NEGATIVE
    std::move(slot).release_by_other();
#else
    release_after_mma(std::move(slot), accumulator, elect_one());
#endif
}
