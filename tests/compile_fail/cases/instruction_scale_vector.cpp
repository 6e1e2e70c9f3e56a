// ue4m3 needs four scale factors for each row; ue8m0 may have two or four.
// expect: "for mxf4nvf4 two of ue8m0 (2X) or four of either type (4X)"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

#ifdef NEGATIVE
constexpr ScaleType type = ScaleType::ue4m3;
#else
constexpr ScaleType type = ScaleType::ue8m0;
#endif
constexpr auto instruction = InstructionDescriptor::builder()
                                 .shape<128, 128>()
                                 .a<OperandType::e2m1>()
                                 .b<OperandType::e2m1>()
                                 .accumulate<f32>()
                                 .block_scale<MmaKind::mxf4nvf4, type>()
                                 .scale_vector<ScaleVector::x2>();

std::uint32_t bits() { return instruction.build().bits(); }
