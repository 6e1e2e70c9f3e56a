// 64 elements of f16 are 32 columns.
// expect: "an operand in tensor memory must be inside the allocation"
#include "tessera/device/tmem.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned first = 232;
#else
constexpr unsigned first = 224;
#endif

__device__ std::uint32_t address(const Tmem<Allocated, 256, CtaGroup::one>& tensor_memory)
{
    return tensor_memory.operand<4, first>().address(0);
}
