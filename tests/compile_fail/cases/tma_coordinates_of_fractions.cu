// Coordinates count elements; any integer type is accepted.
// expect: "tessera: TMA's coordinates are whole numbers of elements"
#include "tessera/device/tma.cuh"

using namespace tessera;

__device__ void fetch(const AnyTensorMap<2>& map, unsigned tile, std::size_t columns)
{
#ifdef NEGATIVE
    tma_prefetch(map, {tile * 0.5F, 0}, L2Policy::evict_first());
#else
    tma_prefetch(map, {tile * columns, tile}, L2Policy::evict_first());
#endif
}
