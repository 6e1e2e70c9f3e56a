// A pair's N is a multiple of 16.
// expect: "N of a tcgen05 instruction is a multiple of 8 for one CTA and of 16 for a pair"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<256, 136>().a<f16>().b<f16>().accumulate<f32>();
#else
constexpr auto instruction = start.shape<256, 144>().a<f16>().b<f16>().accumulate<f32>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
