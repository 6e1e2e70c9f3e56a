// A tile that does not come from a partition may belong to another cluster, or be outside of the matrix.
// expect: "no instance of constructor "tessera::OutputTile"
#include "tessera/device/output_partition.cuh"

using namespace tessera;

__global__ void kernel(std::uint32_t* rows, std::uint32_t units)
{
    const OutputPartition<128, 128> partition(1000, 1000, 8);
    StaticWorkQueue queue(units);
#ifdef NEGATIVE
    const OutputTile<128, 128> tile(0U, 128U);
#else
    const OutputTile<128, 128> tile = partition.tile(queue.first());
#endif
    *rows = tile.first_row();
}
