// Only the weight-stationary form keeps B.
// expect: "the reuse shift is 0, 8, 16 or 32, and 0 unless weight-stationary"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 128>().a<f16>().b<f16>().accumulate<f32>().weight_stationary<24>();
#else
constexpr auto instruction = start.shape<128, 128>().a<f16>().b<f16>().accumulate<f32>().weight_stationary<16>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
