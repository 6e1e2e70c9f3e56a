// The product would run over into the accumulator beside it, which another tile may still be stored from.
// expect: "the instruction has more columns than the accumulator, and would write over its neighbour"
#include "tessera/device/mma.cuh"

using namespace tessera;

using Operand = Tcgen05Descriptor<SharedLayout<Major::k, Swizzle::b128, 256, 64, sizeof(bf16)>>;

#ifdef NEGATIVE
constexpr unsigned columns = 256;
#else
constexpr unsigned columns = 128;
#endif
constexpr auto instruction =
    InstructionDescriptor::builder().shape<128, columns>().a<bf16>().b<bf16>().accumulate<f32>().build();

__device__ void multiply(const TmemAccumulator<128, CtaGroup::one>& d, Operand a, Operand b)
{
    mma(d, a, b, instruction, Accumulate::add);
}
