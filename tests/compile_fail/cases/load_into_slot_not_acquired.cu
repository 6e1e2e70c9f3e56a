// A slot that is being read must not be filled.
// expect: "no instance of overloaded function "tma_load" matches the argument list"
#include "tessera/device/tma.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;
using Map = TensorMap<float, Box<32, 32>, Swizzle::b128>;

__global__ void kernel(const __grid_constant__ Map map)
{
    __shared__ Ring ring;
    __shared__ SharedTile<float, Box<32, 32>, Swizzle::b128> tile;
    const BarriersPublished published = publish_barriers([](const BarrierInitializer&) {});
#ifdef NEGATIVE
    auto slot = RingConsumer<Ring>(ring, published).wait();
    tma_load(map, tile, slot, {0, 0});
    std::move(slot).release();
#else
    RingProducer<Ring>(ring, published).fill([&](auto& slot) { tma_load(map, tile, slot, {0, 0}); });
#endif
}
