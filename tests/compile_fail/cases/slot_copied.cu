// Two copies would be released twice.
// expect: "cannot be referenced -- it is a deleted function"
#include "tessera/device/tma.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;
using Map = TensorMap<float, Box<32, 32>, Swizzle::b128>;

__global__ void kernel()
{
    __shared__ Ring ring;
    RingConsumer<Ring> consumer(ring, publish_barriers([](const BarrierInitializer&) {}));
    auto slot = consumer.wait();
#ifdef NEGATIVE
    auto copy = slot;
    std::move(copy).release();
#endif
    std::move(slot).release();
}
