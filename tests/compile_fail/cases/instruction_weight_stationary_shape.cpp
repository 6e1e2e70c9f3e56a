// The weight-stationary form has few shapes.
// expect: "a weight-stationary instruction has M = 32, 64 or 128 and N = 64, 128 or, if dense, 256"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 96>().a<f16>().b<f16>().accumulate<f32>().weight_stationary();
#else
constexpr auto instruction = start.shape<32, 64>().a<f16>().b<f16>().accumulate<f32>().weight_stationary();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
