// The columns after the last scale factor would be scaled by unrelated data in tensor memory.
// expect: "there are fewer scale factors of B than columns of the instruction"
#include "tessera/device/mma.cuh"

using namespace tessera;

using Operand = Tcgen05Descriptor<SharedLayout<Major::k, Swizzle::b128, 128, 128, 1>>;

constexpr auto start = InstructionDescriptor::builder().shape<128, 128>();
constexpr auto scaled = start.a<OperandType::e4m3>()
                            .b<OperandType::e4m3>()
                            .accumulate<f32>()
                            .block_scale<MmaKind::mxf8f6f4, ScaleType::ue8m0>()
                            .build();
using D = TmemAccumulator<128, CtaGroup::one>;
template <ScaledOperand Operand, unsigned Rows = 128>
using Scales = TmemScales<Operand, Rows, CtaGroup::one>;

#ifdef NEGATIVE
using OfB = Scales<ScaledOperand::b, 64>;
#else
using OfB = Scales<ScaledOperand::b, 128>;
#endif

__device__ void multiply(const D& d, Operand a, Operand b, const Scales<ScaledOperand::a>& of_a, const OfB& of_b)
{
    mma(d, a, b, scaled, of_a, of_b, Accumulate::add);
}
