// Elements beyond the tile belong to another cluster.
// expect: "the parts of an output tile must have equal sizes and be inside the tile"
#include "tessera/device/output_partition.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr std::uint32_t rows = 256;
#else
constexpr std::uint32_t rows = 64;
#endif

__global__ void kernel(std::uint32_t* out, std::uint32_t units)
{
    const OutputPartition<128, 128> partition(1000, 1000, 8);
    StaticWorkQueue queue(units);
    *out = partition.tile(queue.first()).part<rows, 128>(1, 0).first_row();
}
