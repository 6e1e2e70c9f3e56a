// One instruction has one kind.
// expect: "A and B of one tcgen05 instruction are of one kind"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 128>().a<f16>().b<OperandType::e4m3>().accumulate<f32>();
#else
constexpr auto instruction = start.shape<128, 128>().a<f16>().b<f16>().accumulate<f32>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
