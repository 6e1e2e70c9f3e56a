// mxf4 reads two bytes of scale factors at a time, so its ids are even.
// expect: "a scale factor's id is 0 to 3 for mxf8f6f4, 0 or 2 for mxf4 and mxf4nvf4, 0 at 4X"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 128>()
                                 .a<OperandType::e2m1>()
                                 .b<OperandType::e2m1>()
                                 .accumulate<f32>()
                                 .block_scale<MmaKind::mxf4, ScaleType::ue8m0, 1>();
#else
constexpr auto instruction = start.shape<128, 128>()
                                 .a<OperandType::e2m1>()
                                 .b<OperandType::e2m1>()
                                 .accumulate<f32>()
                                 .block_scale<MmaKind::mxf4, ScaleType::ue8m0, 2>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
