// At 2X, a word holds the scale factors of two steps along K. Those of the third are in other columns.
// expect: "one word holds scale factors for four steps along K at 1X, two at 2X, one at 4X"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned step = 2;
#else
constexpr unsigned step = 1;
#endif
constexpr auto instruction = InstructionDescriptor::builder()
                                 .shape<128, 128>()
                                 .a<OperandType::e2m1>()
                                 .b<OperandType::e2m1>()
                                 .accumulate<f32>()
                                 .block_scale<MmaKind::mxf4, ScaleType::ue8m0>()
                                 .build();

std::uint32_t bits() { return instruction.with_scales_of_step<step>().bits(); }
