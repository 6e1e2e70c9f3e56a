// Nobody else would know of the initialization.
// expect: "is inaccessible"
#include "tessera/device/pipeline.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;

__global__ void kernel()
{
    __shared__ Ring ring;
#ifdef NEGATIVE
    publish_barriers([](const BarrierInitializer&) {});
    ring.initialize(BarrierInitializer(), {.producers = 1, .consumers = 1});
#else
    publish_barriers([&](const BarrierInitializer& by) { ring.initialize(by, {.producers = 1, .consumers = 1}); });
#endif
}
