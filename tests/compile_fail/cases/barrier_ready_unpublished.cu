// Only the fence and the synchronization make a barrier's initialization visible to other threads.
// expect: "no instance of constructor "tessera::Barrier<Kind>::Barrier"
#include "tessera/device/barrier.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ BarrierWord<FilledByTma> word;
    const auto published = publish_barriers([&](const BarrierInitializer& by) { by.initialize(word, 1); });
#ifdef NEGATIVE
    Barrier<FilledByTma>(word).wait(PhaseParity::even);
#endif
    Barrier<FilledByTma>(word, published).wait(PhaseParity::even);
}
