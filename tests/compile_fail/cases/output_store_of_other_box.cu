// The store would write beyond the tile, into another cluster's.
// expect: "the output tile does not have the size of the tensor map's box"
#include "tessera/device/output_partition.cuh"

using namespace tessera;

using Map = TensorMap<float, Box<32, 32>, Swizzle::b128>;

#ifdef NEGATIVE
constexpr std::uint32_t rows = 16;
#else
constexpr std::uint32_t rows = 32;
#endif

__global__ void kernel(const __grid_constant__ Map map, std::uint32_t units)
{
    __shared__ SharedTile<float, Box<32, 32>, Swizzle::b128> staged;
    const OutputPartition<128, 128> partition(1000, 1000, 8);
    StaticWorkQueue queue(units);
    tma_store(map, partition.tile(queue.first()).part<rows, 32>(0, 0), staged);
}
