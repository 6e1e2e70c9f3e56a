// mxf4 is scaled by powers of two.
// expect: "mxf8f6f4 and mxf4 are scaled by ue8m0, mxf4nvf4 by ue8m0 or ue4m3"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 128>()
                                 .a<OperandType::e2m1>()
                                 .b<OperandType::e2m1>()
                                 .accumulate<f32>()
                                 .block_scale<MmaKind::mxf4, ScaleType::ue4m3>();
#else
constexpr auto instruction = start.shape<128, 128>()
                                 .a<OperandType::e2m1>()
                                 .b<OperandType::e2m1>()
                                 .accumulate<f32>()
                                 .block_scale<MmaKind::mxf4nvf4, ScaleType::ue4m3>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
