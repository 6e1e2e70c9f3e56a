// Nothing will complete the slot: its consumers would wait forever.
// expect: "nothing is announced for this slot: fill() it, or acquire(bytes) it"
#include "tessera/device/tma.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;
using Map = TensorMap<float, Box<32, 32>, Swizzle::b128>;

__global__ void kernel(const __grid_constant__ Map map)
{
    __shared__ Ring ring;
    __shared__ SharedTile<float, Box<32, 32>, Swizzle::b128> tile;
    RingProducer producer(ring, publish_barriers([&](const BarrierInitializer& by) {
                              ring.initialize(by, {.producers = 1, .consumers = 1});
                          }));
#ifdef NEGATIVE
    producer.acquire().publish();
#else
    producer.fill([&](auto& slot) { tma_load(map, tile, slot, {0, 0}); });
#endif
}
