// The field has two bits.
// expect: "the sparsity selector is 0 to 3"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 128>().a<f16>().b<f16>().accumulate<f32>().sparse<4>();
#else
constexpr auto instruction = start.shape<128, 128>().a<f16>().b<f16>().accumulate<f32>().sparse<3>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
