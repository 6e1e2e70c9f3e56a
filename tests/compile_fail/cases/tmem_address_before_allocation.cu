// There is no address before the hardware has allocated.
// expect: "this tensor memory is not allocated yet: it has no address"
#include "tessera/device/tmem.cuh"

using namespace tessera;

__global__ void kernel(std::uint32_t* out)
{
    __shared__ TmemSlot slot;
    const bool first_warp = threadIdx.x < 32;
    Tmem<Unallocated, 128, CtaGroup::one> unallocated(slot);
#ifdef NEGATIVE
    unallocated.accumulator<128>(0);
#endif
    auto memory = std::move(unallocated).allocate(first_warp);
    *out = memory.accumulator<128>(0).address();
    std::move(memory).release(first_warp);
}
