// The instruction would use the data at column 0 as scale factors.
// expect: "a block-scaled instruction takes the scale factors of A and of B"
#include "tessera/device/mma.cuh"

using namespace tessera;

using Operand = Tcgen05Descriptor<SharedLayout<Major::k, Swizzle::b128, 128, 128, 1>>;

constexpr auto start = InstructionDescriptor::builder().shape<128, 128>();
#ifdef NEGATIVE
constexpr auto instruction = start.a<OperandType::e4m3>()
                                 .b<OperandType::e4m3>()
                                 .accumulate<f32>()
                                 .block_scale<MmaKind::mxf8f6f4, ScaleType::ue8m0>()
                                 .build();
#else
constexpr auto instruction = start.a<OperandType::e4m3>().b<OperandType::e4m3>().accumulate<f32>().build();
#endif
using D = TmemAccumulator<128, CtaGroup::one>;

__device__ void multiply(const D& d, Operand a, Operand b) { mma(d, a, b, instruction, Accumulate::add); }
