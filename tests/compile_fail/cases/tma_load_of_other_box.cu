// The load would write beyond the tile.
// expect: "the tensor map's box is not the shared tile's"
#include "tessera/device/tma.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;
using Map = TensorMap<float, Box<32, 32>, Swizzle::b128>;

#ifdef NEGATIVE
using Tile = SharedTile<float, Box<32, 16>, Swizzle::b128>;
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
