// The weight-stationary form is for one CTA.
// expect: "weight-stationary instructions are for one CTA and not for block-scaled kinds"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<256, 128>().a<f16>().b<f16>().accumulate<f32>().weight_stationary();
#else
constexpr auto instruction = start.shape<128, 128>().a<f16>().b<f16>().accumulate<f32>().weight_stationary();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
