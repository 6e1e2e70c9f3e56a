// The columns may belong to another CTA by then.
// expect: "this tensor memory was released: it has no address any more"
#include "tessera/device/tmem.cuh"

using namespace tessera;

__global__ void kernel(std::uint32_t* out)
{
    __shared__ TmemSlot slot;
    const bool first_warp = threadIdx.x < 32;
    auto memory = Tmem<Unallocated, 128, CtaGroup::one>(slot).allocate(first_warp);
    *out = memory.accumulator<128>(0).address();
    const auto released = std::move(memory).release(first_warp);
#ifdef NEGATIVE
    released.accumulator<128>(0);
#else
    (void)released;
#endif
}
