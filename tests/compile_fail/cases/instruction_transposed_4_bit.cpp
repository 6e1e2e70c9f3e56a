// 4-bit elements cannot be transposed.
// expect: "4-bit and 6-bit elements must be K-major"
#include "tessera/device/instruction_descriptor.hpp"

using namespace tessera;

constexpr auto start = InstructionDescriptor::builder();
#ifdef NEGATIVE
constexpr auto instruction = start.shape<128, 128>()
                                 .a<OperandType::e2m1>()
                                 .b<OperandType::e2m1>()
                                 .accumulate<f32>()
                                 .majors<Major::mn, Major::k>();
#else
constexpr auto instruction = start.shape<128, 128>().a<OperandType::e2m1>().b<OperandType::e2m1>().accumulate<f32>();
#endif

std::uint32_t bits() { return instruction.build().bits(); }
