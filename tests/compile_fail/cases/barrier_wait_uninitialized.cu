// Before its initialization, memory is not a barrier: a wait could pass at once or hang.
// expect: "this is the memory of a barrier: initialize it in publish_barriers()"
#include "tessera/device/barrier.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ BarrierWord<FilledByTma> word;
#ifdef NEGATIVE
    word.wait(PhaseParity::even);
#else
    const auto published = publish_barriers([&](const BarrierInitializer& by) { by.initialize(word, 1); });
    Barrier(word, published).wait(PhaseParity::even);
#endif
}
