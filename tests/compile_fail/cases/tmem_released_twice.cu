// A second dealloc could free another CTA's columns, so release() consumes the handle.
// expect: "matches the argument list and object (the object has type qualifiers that prevent a match)"
#include "tessera/device/tmem.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ TmemSlot slot;
    const bool first_warp = threadIdx.x < 32;
    auto memory = Tmem<Unallocated, 128, CtaGroup::one>(slot).allocate(first_warp);
#ifdef NEGATIVE
    memory.release(first_warp);
#endif
    std::move(memory).release(first_warp);
}
