// Both are addresses in tensor memory: each operand would be scaled by the other's factors.
// expect: "the scale factors of A come before those of B"
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

__device__ void multiply(const D& d, Operand a, Operand b, const Scales<ScaledOperand::a>& of_a,
                         const Scales<ScaledOperand::b>& of_b)
{
#ifdef NEGATIVE
    mma(d, a, b, scaled, of_b, of_a, Accumulate::add);
#else
    mma(d, a, b, scaled, of_a, of_b, Accumulate::add);
#endif
}
