// Two bare integers do not say which count is of producers and which of consumers.
// expect: "tessera: name the arrivals of a ring: initialize(by, {.producers = 1, .consumers = 128})"
#include "tessera/device/pipeline.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;

__global__ void kernel()
{
    __shared__ Ring ring;
    publish_barriers([&](const BarrierInitializer& by) {
#ifdef NEGATIVE
        ring.initialize(by, 1, 128);
#else
        ring.initialize(by, {.producers = 1, .consumers = 128});
#endif
    });
}
