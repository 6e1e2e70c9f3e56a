// Before its initialization, memory is not a barrier: a wait could pass at once or hang.
// expect: "this barrier is not initialized"
#include "tessera/device/barrier.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ BarrierWord word;
    Barrier<FilledByTma, Uninitialized> barrier(word);
#ifdef NEGATIVE
    barrier.wait(PhaseParity::even);
#else
    if (threadIdx.x == 0) {
        std::move(barrier).initialize(1);
    }
    const BarriersPublished published = publish_barriers();
    Barrier<FilledByTma, Ready>(word, published).wait(PhaseParity::even);
#endif
}
