// A part that does not divide the allocation would reach beyond it.
// expect: "an accumulator's columns must divide the allocation's"
#include "tessera/device/tmem.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr std::uint32_t columns = 96;
#else
constexpr std::uint32_t columns = 64;
#endif

__global__ void kernel(std::uint32_t* out)
{
    __shared__ TmemSlot slot;
    auto memory = Tmem<Unallocated, 128, CtaGroup::one>(slot).allocate(threadIdx.x < 32);
    *out = memory.accumulator<columns>(1).address();
    std::move(memory).release(threadIdx.x < 32);
}
