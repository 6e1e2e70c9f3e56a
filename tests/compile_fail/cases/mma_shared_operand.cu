// The reverse: the instruction is for A in tensor memory, but A is in shared memory.
// expect: "this form of mma is for A in shared memory, and not for weight-stationary instructions"
#include "tessera/device/mma.cuh"

using namespace tessera;

using Operand = Tcgen05Descriptor<SharedLayout<Major::k, Swizzle::b128, 128, 64, sizeof(f16)>>;

constexpr auto start = InstructionDescriptor::builder().shape<128, 128>();

#ifdef NEGATIVE
constexpr auto instruction = start.a<f16>().b<f16>().accumulate<f32>().a_in_tensor_memory().build();
#else
constexpr auto instruction = start.a<f16>().b<f16>().accumulate<f32>().build();
#endif

__device__ void multiply(const TmemAccumulator<128, CtaGroup::one>& d, Operand a, Operand b)
{
    mma(d, a, b, instruction, Accumulate::add);
}
