// A descriptor that is only bits says nothing of its tile.
// expect: "this descriptor's layout was chosen at run time, and so must the instruction be: AnyMmaInstruction"
#include "tessera/device/mma.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Operand = Tcgen05Descriptor<>;
#else
using Operand = Tcgen05Descriptor<SharedLayout<Major::k, Swizzle::b128, 128, 64, sizeof(bf16)> >;
#endif
constexpr auto instruction =
    InstructionDescriptor::builder().shape<128, 128>().a<bf16>().b<bf16>().accumulate<f32>().build();

__device__ void multiply(const TmemAccumulator<128, CtaGroup::one>& d, Operand a, Operand b)
{
    mma(d, a, b, instruction, Accumulate::add);
}
