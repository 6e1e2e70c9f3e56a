// Kinds without scale factors follow from the element types.
// expect: "block_scale is for the kinds mxf8f6f4, mxf4 and mxf4nvf4"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 128>()
                                 .a<OperandType::e2m1>()
                                 .b<OperandType::e2m1>()
                                 .accumulate<f32>()
                                 .block_scale<MmaKind::f8f6f4, ScaleType::ue8m0>();
#else
constexpr auto instruction = start.shape<128, 128>()
                                 .a<OperandType::e2m1>()
                                 .b<OperandType::e2m1>()
                                 .accumulate<f32>()
                                 .block_scale<MmaKind::mxf8f6f4, ScaleType::ue8m0>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
