// K = 96 exists for pairs only.
// expect: "K = 96 is for dense mxf4 and mxf4nvf4 with M = 256"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 128>()
                                 .a<OperandType::e2m1>()
                                 .b<OperandType::e2m1>()
                                 .accumulate<f32>()
                                 .block_scale<MmaKind::mxf4, ScaleType::ue8m0>()
                                 .long_k();
#else
constexpr auto instruction = start.shape<128, 128>()
                                 .a<OperandType::e2m1>()
                                 .b<OperandType::e2m1>()
                                 .accumulate<f32>()
                                 .block_scale<MmaKind::mxf4, ScaleType::ue8m0>()
                                 .shape<256, 128>()
                                 .long_k();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
