// 256 columns of B have scale factors in 8 columns of tensor memory.
// expect: "scale factors begin at a multiple of 4 columns and are inside the allocation"
#include "tessera/device/tmem.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned first = 252;
#else
constexpr unsigned first = 248;
#endif

__device__ std::uint32_t address(const Tmem<Allocated, 256, CtaGroup::one>& tensor_memory)
{
    return tensor_memory.scales<ScaledOperand::b, 256, first>().address();
}
