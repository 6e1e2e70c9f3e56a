// The hardware allocates powers of two.
// expect: "tensor memory is allocated in 32, 64, 128, 256 or 512 columns"
#include "tessera/device/tmem.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr std::uint32_t columns = 192;
#else
constexpr std::uint32_t columns = 256;
#endif

__global__ void kernel()
{
    __shared__ TmemSlot slot;
    (void)Tmem<Unallocated, columns, CtaGroup::one>(slot).allocate(threadIdx.x < 32).release(threadIdx.x < 32);
}
