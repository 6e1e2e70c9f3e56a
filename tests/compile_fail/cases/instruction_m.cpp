// There is no M of 192.
// expect: "M of a tcgen05 instruction is 64 or 128 for one CTA and 128 or 256 for a pair"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<192, 128>().a<f16>().b<f16>().accumulate<f32>();
#else
constexpr auto instruction = start.shape<128, 128>().a<f16>().b<f16>().accumulate<f32>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
