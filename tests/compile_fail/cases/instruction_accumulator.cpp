// tf32 has no f16 accumulator.
// expect: "no such accumulator"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 128>().a<f32>().b<f32>().accumulate<f16>();
#else
constexpr auto instruction = start.shape<128, 128>().a<f32>().b<f32>().accumulate<f32>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
