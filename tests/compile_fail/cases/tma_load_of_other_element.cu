// The readers would reinterpret the elements.
// expect: "the tensor map's element type is not the shared tile's"
#include "tessera/device/tma.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;
using Map = TensorMap<float, Box<32, 32>, Swizzle::b128>;

#ifdef NEGATIVE
using Tile = SharedTile<std::uint32_t, Box<32, 32>, Swizzle::b128>;
#else
using Tile = SharedTile<float, Box<32, 32>, Swizzle::b128>;
#endif

__global__ void kernel(const __grid_constant__ Map map)
{
    __shared__ Ring ring;
    __shared__ Tile tile;
    RingProducer<Ring> producer(ring, publish_barriers([](const BarrierInitializer&) {}));
    producer.fill([&](auto& slot) { tma_load(map, tile, slot, {0, 0}); });
}
