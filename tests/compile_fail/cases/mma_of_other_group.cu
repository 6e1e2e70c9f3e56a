// One CTA's instruction would write half of a pair's accumulator.
// expect: "one of instruction and accumulator is a pair's, the other one CTA's"
#include "tessera/device/mma.cuh"

using namespace tessera;

using Operand = Tcgen05Descriptor<SharedLayout<Major::k, Swizzle::b128, 128, 64, sizeof(bf16)>>;
#ifdef NEGATIVE
constexpr unsigned m = 256;
#else
constexpr unsigned m = 128;
#endif
constexpr auto instruction =
    InstructionDescriptor::builder().shape<m, 128>().a<bf16>().b<bf16>().accumulate<f32>().build();

__device__ void multiply(const TmemAccumulator<128, CtaGroup::one>& d, Operand a, Operand b)
{
    mma(d, a, b, instruction, Accumulate::add);
}
