// Only a ring knows which slot is free.
// expect: "is inaccessible"
#include "tessera/device/tma.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;
using Map = TensorMap<float, Box<32, 32>, Swizzle::b128>;

__global__ void kernel()
{
    __shared__ Ring ring;
    const BarriersPublished published = publish_barriers([](const BarrierInitializer&) {});
#ifdef NEGATIVE
    FillSlot<Ring> slot(&ring, 0, published);
#else
    FillSlot<Ring> slot = RingProducer<Ring>(ring, published).acquire();
#endif
    std::move(slot).publish_written();
}
