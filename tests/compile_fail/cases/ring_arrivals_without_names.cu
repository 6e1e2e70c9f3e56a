// Two bare integers do not say which count is of producers and which of consumers.
// expect: "tessera: name the arrivals of a ring: initialize({.producers = 1, .consumers = 128})"
#include "tessera/device/pipeline.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;

__global__ void kernel()
{
    __shared__ Ring ring;
    if (threadIdx.x == 0) {
#ifdef NEGATIVE
        ring.initialize(1, 128);
#else
        ring.initialize({.producers = 1, .consumers = 128});
#endif
    }
}
