// The tensor core completes this barrier when it is done; threads do not arrive at it.
// expect: "threads do not arrive at a barrier that the tensor core completes"
#include "tessera/device/barrier.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Kind = FreedByTensorCore;
#else
using Kind = FreedByThreads;
#endif

__global__ void kernel()
{
    __shared__ BarrierWord<Kind> word;
    Barrier<Kind>(word, publish_barriers([](const BarrierInitializer&) {})).arrive();
}
