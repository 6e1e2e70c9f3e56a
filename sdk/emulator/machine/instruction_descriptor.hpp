#pragma once

// The 32-bit instruction descriptor of tcgen05.mma (PTX ISA "Instruction descriptor"): shape, types and options of one
// instruction.

#include <cstdint>
#include <string>
#include <string_view>

#include "machine/matrix_descriptor.hpp"
#include "numerics/formats.hpp"

namespace tessera::emulator {

/// .kind of tcgen05.mma; mma.sync has f8f6f4 and the block-scaled ones.
enum class MmaKind : std::uint8_t { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };
[[nodiscard]] std::string_view name_of(MmaKind kind) noexcept;
[[nodiscard]] constexpr bool is_block_scaled(MmaKind kind) noexcept { return kind >= MmaKind::mxf8f6f4; }

/// Element types of A and B.
enum class MmaElement : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, u8, s8 };
/// Element types of D.
enum class MmaSum : std::uint8_t { f16, f32, s32 };

/// Bits of an element's type: 6 for e2m3.
[[nodiscard]] constexpr unsigned bits_of(MmaElement element) noexcept
{
    switch (element) {
        case MmaElement::f16:
        case MmaElement::bf16: return 16;
        case MmaElement::tf32: return 32;
        case MmaElement::e2m3:
        case MmaElement::e3m2: return 6;
        case MmaElement::e2m1: return 4;
        default: return 8;
    }
}
[[nodiscard]] std::string_view name_of(MmaElement element) noexcept;
/// The format in numerics; not for u8 and s8.
[[nodiscard]] numerics::Format format_of(MmaElement element) noexcept;

/// The instruction's modifiers.
struct MmaForm {
    MmaKind kind = MmaKind::f16;
    unsigned cta_group = 1;
    bool sparse = false;             ///< .sp
    bool weight_stationary = false;  ///< .ws
    bool a_in_tensor_memory = false;
    bool shift_a = false;  ///< .ashift
    unsigned scales = 0;   ///< scale factors per row: 1, 2 or 4; 0 without block scaling
};

/// How the rows of D are distributed over the lanes (PTX ISA "Data Path Layout Organization").
enum class DataPath : std::uint8_t { a, b, c, d, e, f, g };

struct InstructionDescriptor {
    unsigned m = 0, n = 0, k = 0;  ///< of the whole instruction
    MmaElement a = MmaElement::f16, b = MmaElement::f16;
    MmaSum d = MmaSum::f32;
    bool negate_a = false, negate_b = false;
    Major a_major = Major::k, b_major = Major::k;
    bool saturate = false;  ///< kind::i8
    unsigned sparsity_selector = 0;
    unsigned max_shift = 0;           ///< columns, of .ws
    bool scale_ue8m0 = true;          ///< false: UE4M3
    unsigned sfa_id = 0, sfb_id = 0;  ///< byte of the word with the first scale factor
    DataPath data_path = DataPath::d;
};

/// A descriptor, or a sentence that names the wrong field.
struct DecodedInstructionDescriptor {
    InstructionDescriptor descriptor;
    std::string problem;
};

[[nodiscard]] DecodedInstructionDescriptor decode_instruction_descriptor(std::uint32_t bits, const MmaForm& form);

}  // namespace tessera::emulator
