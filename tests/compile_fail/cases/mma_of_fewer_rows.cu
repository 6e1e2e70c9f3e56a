// The tensor core would read what follows the tile as rows of B.
// expect: "the instruction reads more rows than the tile has"
#include "tessera/device/mma.cuh"

using namespace tessera;

template <unsigned Rows>
using Operand = Tcgen05Descriptor<SharedLayout<Major::k, Swizzle::b128, Rows, 64, sizeof(bf16)>>;
constexpr auto instruction =
    InstructionDescriptor::builder().shape<128, 128>().a<bf16>().b<bf16>().accumulate<f32>().build();
#ifdef NEGATIVE
using OperandB = Operand<64>;
#else
using OperandB = Operand<128>;
#endif

__device__ void multiply(const TmemAccumulator<128, CtaGroup::one>& d, Operand<128> a, OperandB b)
{
    mma(d, a, b, instruction, Accumulate::add);
}
