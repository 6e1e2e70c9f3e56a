// The rank is checked even if the box is known at run time only.
// expect: "tessera: TMA takes one coordinate for each dimension of the tensor map, innermost first"
#include "tessera/device/tma.cuh"

using namespace tessera;

__device__ void load(const AnyTensorMap<3>& map, std::byte* to, ByteCounter<CtaGroup::one> bytes)
{
#ifdef NEGATIVE
    tma_load(map, to, bytes, {0, 0});
#else
    tma_load(map, to, bytes, {0, 0, 0});
#endif
}
