// Nothing would be scaled.
// expect: "only block-scaled kinds take scale factors"
#include "tessera/device/mma.cuh"

using namespace tessera;

using Operand = Tcgen05Descriptor<SharedLayout<Major::k, Swizzle::b128, 128, 128, 1>>;

constexpr auto start = InstructionDescriptor::builder().shape<128, 128>();
#ifdef NEGATIVE
constexpr auto instruction = start.a<OperandType::e4m3>().b<OperandType::e4m3>().accumulate<f32>().build();
#else
constexpr auto instruction = start.a<OperandType::e4m3>()
                                 .b<OperandType::e4m3>()
                                 .accumulate<f32>()
                                 .block_scale<MmaKind::mxf8f6f4, ScaleType::ue8m0>()
                                 .build();
#endif
using D = TmemAccumulator<128, CtaGroup::one>;
template <ScaledOperand Operand, unsigned Rows = 128>
using Scales = TmemScales<Operand, Rows, CtaGroup::one>;

__device__ void multiply(const D& d, Operand a, Operand b, const Scales<ScaledOperand::a>& of_a,
                         const Scales<ScaledOperand::b>& of_b)
{
    mma(d, a, b, instruction, of_a, of_b, Accumulate::add);
}
