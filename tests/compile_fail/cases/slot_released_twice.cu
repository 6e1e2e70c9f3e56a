// A released slot could be released again, so release() consumes it.
// expect: "cannot be called on an lvalue"
#include "tessera/device/pipeline.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;

__global__ void kernel()
{
    __shared__ Ring ring;
    RingConsumer<Ring> consumer(ring, publish_barriers([](const BarrierInitializer&) {}));
    auto slot = consumer.wait();
#ifdef NEGATIVE
    slot.release();
    slot.release();
#else
    std::move(slot).release();
#endif
}
