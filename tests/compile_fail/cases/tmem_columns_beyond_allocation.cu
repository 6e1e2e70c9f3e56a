// An accumulator is not wider than the columns that are allocated, wherever it begins.
// expect: "an accumulator has at most the columns of its allocation"
#include "tessera/device/tmem.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr std::uint32_t columns = 256;
#else
constexpr std::uint32_t columns = 96;
#endif

__global__ void kernel(std::uint32_t* out)
{
    __shared__ TmemSlot slot;
    auto memory = Tmem<Unallocated, 128, CtaGroup::one>(slot).allocate(threadIdx.x < 32);
    *out = memory.columns_from<columns>(32).address();
    std::move(memory).release(threadIdx.x < 32);
}
