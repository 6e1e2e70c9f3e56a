// Only the fence and the synchronization make a barrier's initialization visible to other threads.
// expect: "no instance of constructor "tessera::Barrier<Kind, tessera::Ready>::Barrier"
#include "tessera/device/barrier.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ BarrierWord word;
    const BarriersPublished published = publish_barriers();
#ifdef NEGATIVE
    Barrier<FilledByTma, Ready>(word).wait(PhaseParity::even);
#endif
    Barrier<FilledByTma, Ready>(word, published).wait(PhaseParity::even);
}
