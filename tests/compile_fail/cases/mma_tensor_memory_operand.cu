// With A in tensor memory other rules apply; they are checked when the instruction is built.
// expect: "an instruction with A in tensor memory is built with a_in_tensor_memory()"
#include "tessera/device/mma.cuh"

using namespace tessera;

using Operand = Tcgen05Descriptor<SharedLayout<Major::k, Swizzle::b128, 128, 64, sizeof(f16)>>;

constexpr auto start = InstructionDescriptor::builder().shape<128, 128>();

#ifdef NEGATIVE
constexpr auto instruction = start.a<f16>().b<f16>().accumulate<f32>().build();
#else
constexpr auto instruction = start.a<f16>().b<f16>().accumulate<f32>().a_in_tensor_memory().build();
#endif

__device__ void multiply(const TmemAccumulator<128, CtaGroup::one>& d, const TmemOperand<4, CtaGroup::one>& a,
                         Operand b)
{
    mma(d, a, 0, b, instruction, Accumulate::add);
}
