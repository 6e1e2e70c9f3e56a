// The tensor core completes it when it is done, not a thread.
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
    __shared__ BarrierWord word;
    Barrier<Kind, Ready>(word, publish_barriers()).arrive();
}
