// A second dealloc could free another CTA's columns.
// expect: "this tensor memory was released already"
#include "tessera/device/tmem.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ TmemSlot slot;
    const bool first_warp = threadIdx.x < 32;
    const auto released = Tmem<Unallocated, 128, CtaGroup::one>(slot).allocate(first_warp).release(first_warp);
#ifdef NEGATIVE
    released.release(first_warp);
#else
    (void)released;
#endif
}
