// In tensor memory, rows of A are lanes.
// expect: "A in tensor memory is K-major"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction =
    start.shape<128, 128>().a<f16>().b<f16>().accumulate<f32>().a_in_tensor_memory().majors<Major::mn, Major::k>();
#else
constexpr auto instruction = start.shape<128, 128>().a<f16>().b<f16>().accumulate<f32>().a_in_tensor_memory();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
