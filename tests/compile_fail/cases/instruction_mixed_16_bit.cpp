// f16 and bf16 belong to one kind but cannot be mixed.
// expect: "kind::f16 multiplies f16 with f16 or bf16 with bf16, not one with the other"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 128>().a<f16>().b<bf16>().accumulate<f32>();
#else
constexpr auto instruction = start.shape<128, 128>().a<bf16>().b<bf16>().accumulate<f32>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
