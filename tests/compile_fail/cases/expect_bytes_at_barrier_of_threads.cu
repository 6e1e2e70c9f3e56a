// The bytes would never arrive.
// expect: "only a barrier filled by TMA or by cluster launch control expects bytes"
#include "tessera/device/barrier.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Kind = FreedByThreads;
#else
using Kind = FilledByTma;
#endif

__global__ void kernel()
{
    __shared__ BarrierWord<Kind> word;
    Barrier<Kind>(word, publish_barriers([](const BarrierInitializer&) {})).arrive_and_expect(128);
}
