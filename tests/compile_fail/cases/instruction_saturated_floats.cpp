// Saturation is for integers; floats have infinity.
// expect: "saturate is for integers"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 128>().a<f16>().b<f16>().accumulate<f32>().saturate();
#else
constexpr auto instruction =
    start.shape<128, 128>().a<std::int8_t>().b<std::int8_t>().accumulate<std::int32_t>().saturate();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
