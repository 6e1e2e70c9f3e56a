// The tensor core would read two elements of 8 bits as one.
// expect: "the tile's elements are larger or smaller than those that the instruction multiplies"
#include "tessera/device/mma.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Element = std::uint8_t;
#else
using Element = bf16;
#endif
using Operand = Tcgen05Descriptor<SharedLayout<Major::k, Swizzle::b128, 128, 128 / sizeof(Element), sizeof(Element)>>;
constexpr auto instruction =
    InstructionDescriptor::builder().shape<128, 128>().a<bf16>().b<bf16>().accumulate<f32>().build();

__device__ void multiply(const TmemAccumulator<128, CtaGroup::one>& d, Operand a, Operand b)
{
    mma(d, a, b, instruction, Accumulate::add);
}
