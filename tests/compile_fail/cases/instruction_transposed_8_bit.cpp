// N-major bytes are read in larger groups.
// expect: "with 8-bit N-major B, N of a tcgen05 instruction is a multiple of 16 for one CTA"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 24>()
                                 .a<OperandType::e4m3>()
                                 .b<OperandType::e4m3>()
                                 .accumulate<f32>()
                                 .majors<Major::k, Major::mn>();
#else
constexpr auto instruction = start.shape<128, 24>().a<OperandType::e4m3>().b<OperandType::e4m3>().accumulate<f32>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
