// Only floating-point inputs have a sign to flip.
// expect: "integers cannot be negated by tcgen05"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction =
    start.shape<128, 128>().a<std::int8_t>().b<std::int8_t>().accumulate<std::int32_t>().negate<true, false>();
#else
constexpr auto instruction = start.shape<128, 128>().a<f16>().b<f16>().accumulate<f32>().negate<true, false>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
