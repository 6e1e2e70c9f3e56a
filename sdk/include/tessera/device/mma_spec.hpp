#pragma once

/// @file
/// @ingroup device_mma
/// @brief One tcgen05.mma as plain values: its rules, and the bits of its 32-bit instruction descriptor.
///
/// `InstructionDescriptor` makes types of it. Source: PTX ISA 9.0, "Instruction descriptor", "Matrix shape" and "Block
/// scaling" of tcgen05.

#include <cstdint>

#include "tessera/detail/host_device.hpp"
#include "tessera/device/cta_group.hpp"
#include "tessera/device/smem_descriptor.hpp"

namespace tessera {

/// `.kind` of tcgen05.mma. The last three are block-scaled.
enum class MmaKind : std::uint8_t {
    f16,       ///< f16 or bf16
    tf32,      ///< tf32
    f8f6f4,    ///< floats of 8, 6 or 4 bits, mixed
    i8,        ///< u8 or s8
    mxf8f6f4,  ///< block-scaled floats of 8, 6 or 4 bits, mixed
    mxf4,      ///< block-scaled e2m1
    mxf4nvf4   ///< block-scaled e2m1 with scale factors of ue8m0 or ue4m3
};

/// The type of A's or B's elements.
enum class OperandType : std::uint8_t {
    f16,   ///< IEEE binary16
    bf16,  ///< bfloat16
    tf32,  ///< the upper 19 bits of an f32
    e4m3,  ///< 8-bit float
    e5m2,  ///< 8-bit float
    e2m3,  ///< 6-bit float
    e3m2,  ///< 6-bit float
    e2m1,  ///< 4-bit float
    u8,    ///< unsigned 8-bit integer
    s8     ///< signed 8-bit integer
};

/// The type of D's elements.
enum class AccumulatorType : std::uint8_t {
    f16,  ///< IEEE binary16
    f32,  ///< IEEE binary32
    s32   ///< signed 32-bit integer
};

/// The type of a block-scaled instruction's scale factors.
enum class ScaleType : std::uint8_t {
    none,   ///< no scale factors
    ue8m0,  ///< powers of two
    ue4m3   ///< unsigned 8-bit floats
};

/// The number of scale factors that a row of A or B has for one instruction: `.scale_vec`. Each serves an equal part of
/// K.
enum class ScaleVector : std::uint8_t {
    none = 0,  ///< no scale factors
    x1 = 1,    ///< one
    x2 = 2,    ///< two
    x4 = 4     ///< four
};

/// The three forms of the instruction.
enum class MmaForm : std::uint8_t {
    shared,            ///< A in shared memory
    tensor_memory_a,   ///< A in tensor memory
    weight_stationary  ///< `.ws`
};

/// The extents of D of one instruction.
struct MmaShape {
    std::uint32_t m;  ///< rows of D, of both CTAs of a pair
    std::uint32_t n;  ///< columns of D
};

/// One matrix instruction as plain values.
struct MmaSpec {
    MmaKind kind = MmaKind::f16;                   ///< the list of element types
    CtaGroup group = CtaGroup::one;                ///< one CTA or a pair
    MmaForm form = MmaForm::shared;                ///< where A is
    std::uint32_t m = 0;                           ///< rows of D, of both CTAs of a pair
    std::uint32_t n = 0;                           ///< columns of D
    OperandType a = OperandType::f16;              ///< A's elements
    OperandType b = OperandType::f16;              ///< B's elements
    AccumulatorType d = AccumulatorType::f32;      ///< D's elements
    Major a_major = Major::k;                      ///< the contiguous direction of A in shared memory
    Major b_major = Major::k;                      ///< the contiguous direction of B in shared memory
    bool negate_a = false;                         ///< multiplies with -A
    bool negate_b = false;                         ///< multiplies with -B
    bool saturate = false;                         ///< clamps s32 instead of wrapping
    bool sparse = false;                           ///< `.sp`: A has half of its elements
    std::uint32_t sparsity_selector = 0;           ///< `.sp`: 0 to 3
    std::uint32_t reuse_shift = 0;                 ///< `.ws`: 0, 8, 16 or 32
    ScaleType scale = ScaleType::none;             ///< type of the scale factors of block-scaled kinds
    ScaleVector scale_vector = ScaleVector::none;  ///< their number; for `none` see `scale_vector_of`
    std::uint32_t a_scale_id = 0;                  ///< A's byte in the word of scale factors
    std::uint32_t b_scale_id = 0;                  ///< B's byte in the word of scale factors
    bool long_k = false;                           ///< K = 96 instead of 64 (mxf4 kinds, sm_103a)
};

/// The rule that an instruction breaks. `build()` of `InstructionDescriptor` has a sentence for each.
enum class MmaFault : std::uint8_t {
    none,                     ///< no rule is broken
    types,                    ///< A and B are of different kinds, or of a type that the kind lacks
    mixed_16_bit,             ///< f16 with bf16
    accumulator,              ///< the kind does not accumulate in this type
    m,                        ///< M
    n,                        ///< N
    n_transposed_8_bit,       ///< N with 8-bit N-major B
    major_4_bit,              ///< 4-bit or 6-bit elements that are not K-major
    major_tensor_memory,      ///< A in tensor memory that is not K-major
    negated_integers,         ///< a negated integer operand
    saturated_floats,         ///< saturation of floats
    selector,                 ///< the sparsity selector
    weight_stationary,        ///< weight-stationary for a pair or a block-scaled kind
    weight_stationary_shape,  ///< M or N of a weight-stationary instruction
    reuse_shift,              ///< the reuse shift
    scale_type,               ///< the type of the scale factors
    scale_vector,             ///< the number of scale factors
    scale_id,                 ///< the byte of the scale factors
    long_k,                   ///< K = 96
};

/// Returns true for the kinds that take scale factors.
TESSERA_DETAIL_HOST_DEVICE constexpr bool is_block_scaled(MmaKind kind) noexcept
{
    return kind == MmaKind::mxf8f6f4 || kind == MmaKind::mxf4 || kind == MmaKind::mxf4nvf4;
}

/// Returns the number of scale factors: the spec's, or else the usual one of its kind.
TESSERA_DETAIL_HOST_DEVICE constexpr ScaleVector scale_vector_of(const MmaSpec& spec) noexcept
{
    if (spec.scale_vector != ScaleVector::none || !is_block_scaled(spec.kind)) {
        return spec.scale_vector;
    }
    switch (spec.kind) {
        case MmaKind::mxf8f6f4: return ScaleVector::x1;
        case MmaKind::mxf4: return ScaleVector::x2;
        default: return spec.scale == ScaleType::ue4m3 ? ScaleVector::x4 : ScaleVector::x2;
    }
}

namespace detail {

TESSERA_DETAIL_HOST_DEVICE constexpr bool is_multiple_in(std::uint32_t value, std::uint32_t low, std::uint32_t high,
                                                         std::uint32_t step) noexcept
{
    return value >= low && value <= high && value % step == 0;
}

TESSERA_DETAIL_HOST_DEVICE constexpr bool is_8_bit(OperandType type) noexcept
{
    return type == OperandType::e4m3 || type == OperandType::e5m2 || type == OperandType::u8 || type == OperandType::s8;
}

TESSERA_DETAIL_HOST_DEVICE constexpr bool is_below_8_bit(OperandType type) noexcept
{
    return type == OperandType::e2m3 || type == OperandType::e3m2 || type == OperandType::e2m1;
}

TESSERA_DETAIL_HOST_DEVICE constexpr bool is_of_kind(OperandType type, MmaKind kind) noexcept
{
    switch (kind) {
        case MmaKind::f16: return type == OperandType::f16 || type == OperandType::bf16;
        case MmaKind::tf32: return type == OperandType::tf32;
        case MmaKind::i8: return type == OperandType::u8 || type == OperandType::s8;
        case MmaKind::f8f6f4:
        case MmaKind::mxf8f6f4: return type == OperandType::e4m3 || type == OperandType::e5m2 || is_below_8_bit(type);
        case MmaKind::mxf4:
        case MmaKind::mxf4nvf4: break;
    }
    return type == OperandType::e2m1;
}

TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t operand_code(OperandType type, MmaKind kind) noexcept
{
    switch (type) {
        case OperandType::f16:
        case OperandType::e4m3:
        case OperandType::u8: return 0;
        case OperandType::bf16:
        case OperandType::e5m2:
        case OperandType::s8: return 1;
        case OperandType::tf32: return 2;
        case OperandType::e2m3: return 3;
        case OperandType::e3m2: return 4;
        case OperandType::e2m1: break;
    }
    return kind == MmaKind::f8f6f4 || kind == MmaKind::mxf8f6f4 ? 5 : 1;
}

TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t accumulator_code(AccumulatorType type) noexcept
{
    switch (type) {
        case AccumulatorType::f16: return 0;
        case AccumulatorType::f32: return 1;
        case AccumulatorType::s32: break;
    }
    return 2;
}

TESSERA_DETAIL_HOST_DEVICE constexpr bool accumulates_into(const MmaSpec& spec) noexcept
{
    switch (spec.kind) {
        case MmaKind::f16:
            return spec.d == AccumulatorType::f32 || (spec.d == AccumulatorType::f16 && spec.a == OperandType::f16);
        case MmaKind::f8f6f4: return spec.d == AccumulatorType::f32 || spec.d == AccumulatorType::f16;
        case MmaKind::i8: return spec.d == AccumulatorType::s32;
        default: return spec.d == AccumulatorType::f32;
    }
}

TESSERA_DETAIL_HOST_DEVICE constexpr bool has_valid_m(const MmaSpec& spec) noexcept
{
    const bool scaled = is_block_scaled(spec.kind);
    if (spec.group == CtaGroup::one) {
        return spec.m == 128 || (spec.m == 64 && !scaled);
    }
    return spec.m == 256 || (spec.m == 128 && !(scaled && spec.sparse));
}

TESSERA_DETAIL_HOST_DEVICE constexpr bool has_valid_n(const MmaSpec& spec) noexcept
{
    const bool single = spec.group == CtaGroup::one;
    if (spec.kind == MmaKind::i8) {
        return single ? is_multiple_in(spec.n, 8, 32, 8) || is_multiple_in(spec.n, 48, 256, 16)
                      : is_multiple_in(spec.n, 32, 256, 32);
    }
    return single ? is_multiple_in(spec.n, 8, 256, 8) : is_multiple_in(spec.n, 16, 256, 16);
}

TESSERA_DETAIL_HOST_DEVICE constexpr bool has_valid_weight_stationary_shape(const MmaSpec& spec) noexcept
{
    return (spec.m == 32 || spec.m == 64 || spec.m == 128) &&
           (spec.n == 64 || spec.n == 128 || (spec.n == 256 && !spec.sparse));
}

TESSERA_DETAIL_HOST_DEVICE constexpr bool has_valid_scale_ids(const MmaSpec& spec) noexcept
{
    if (!is_block_scaled(spec.kind)) {
        return spec.a_scale_id == 0 && spec.b_scale_id == 0;
    }
    const auto bytes = static_cast<std::uint32_t>(scale_vector_of(spec));
    return spec.a_scale_id < 4 && spec.a_scale_id % bytes == 0 && spec.b_scale_id < 4 && spec.b_scale_id % bytes == 0;
}

TESSERA_DETAIL_HOST_DEVICE constexpr bool has_valid_scale_vector(const MmaSpec& spec) noexcept
{
    const ScaleVector vector = scale_vector_of(spec);
    switch (spec.kind) {
        case MmaKind::mxf8f6f4: return vector == ScaleVector::x1;
        case MmaKind::mxf4: return vector == ScaleVector::x2;
        case MmaKind::mxf4nvf4:
            return vector == ScaleVector::x4 || (vector == ScaleVector::x2 && spec.scale == ScaleType::ue8m0);
        default: return vector == ScaleVector::none;
    }
}

TESSERA_DETAIL_HOST_DEVICE constexpr bool has_valid_scale_type(const MmaSpec& spec) noexcept
{
    if (!is_block_scaled(spec.kind)) {
        return spec.scale == ScaleType::none;
    }
    return spec.scale == ScaleType::ue8m0 || (spec.scale == ScaleType::ue4m3 && spec.kind == MmaKind::mxf4nvf4);
}

}  // namespace detail

/// Returns the first rule that `spec` breaks, or `MmaFault::none`.
TESSERA_DETAIL_HOST_DEVICE constexpr MmaFault find_fault(const MmaSpec& spec) noexcept
{
    const bool four_bit_kind = spec.kind == MmaKind::mxf4 || spec.kind == MmaKind::mxf4nvf4;
    const bool any_mn_major = spec.a_major == Major::mn || spec.b_major == Major::mn;
    if (!detail::is_of_kind(spec.a, spec.kind) || !detail::is_of_kind(spec.b, spec.kind)) {
        return MmaFault::types;
    }
    if (spec.kind == MmaKind::f16 && spec.a != spec.b) {
        return MmaFault::mixed_16_bit;
    }
    if (!detail::accumulates_into(spec)) {
        return MmaFault::accumulator;
    }
    if (spec.form == MmaForm::weight_stationary) {
        if (spec.group == CtaGroup::pair || is_block_scaled(spec.kind)) {
            return MmaFault::weight_stationary;
        }
        if (!detail::has_valid_weight_stationary_shape(spec)) {
            return MmaFault::weight_stationary_shape;
        }
    } else {
        if (!detail::has_valid_m(spec)) {
            return MmaFault::m;
        }
        if (!detail::has_valid_n(spec)) {
            return MmaFault::n;
        }
    }
    if (detail::is_8_bit(spec.b) && spec.b_major == Major::mn &&
        spec.n % (spec.group == CtaGroup::one ? 16 : 32) != 0) {
        return MmaFault::n_transposed_8_bit;
    }
    if ((four_bit_kind && any_mn_major) || (detail::is_below_8_bit(spec.a) && spec.a_major == Major::mn) ||
        (detail::is_below_8_bit(spec.b) && spec.b_major == Major::mn)) {
        return MmaFault::major_4_bit;
    }
    if (spec.form == MmaForm::tensor_memory_a && spec.a_major == Major::mn) {
        return MmaFault::major_tensor_memory;
    }
    if (spec.kind == MmaKind::i8 && (spec.negate_a || spec.negate_b)) {
        return MmaFault::negated_integers;
    }
    if (spec.kind != MmaKind::i8 && spec.saturate) {
        return MmaFault::saturated_floats;
    }
    if (spec.sparsity_selector > 3 || (spec.sparsity_selector != 0 && (!spec.sparse || is_block_scaled(spec.kind)))) {
        return MmaFault::selector;
    }
    const std::uint32_t shift = spec.reuse_shift;
    if (shift != 0 && (spec.form != MmaForm::weight_stationary || (shift != 8 && shift != 16 && shift != 32))) {
        return MmaFault::reuse_shift;
    }
    if (!detail::has_valid_scale_type(spec)) {
        return MmaFault::scale_type;
    }
    if (!detail::has_valid_scale_vector(spec)) {
        return MmaFault::scale_vector;
    }
    if (!detail::has_valid_scale_ids(spec)) {
        return MmaFault::scale_id;
    }
    if (spec.long_k && (!four_bit_kind || spec.sparse || spec.m != 256)) {
        return MmaFault::long_k;
    }
    return MmaFault::none;
}

/// Returns the descriptor of an instruction that breaks no rule.
TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t instruction_bits(const MmaSpec& spec) noexcept
{
    const auto bit = [](bool value, unsigned position) { return static_cast<std::uint32_t>(value) << position; };
    std::uint32_t bits = bit(spec.sparse, 2) | detail::operand_code(spec.a, spec.kind) << 7 |
                         detail::operand_code(spec.b, spec.kind) << 10 | bit(spec.negate_a, 13) |
                         bit(spec.negate_b, 14) | bit(spec.a_major == Major::mn, 15) |
                         bit(spec.b_major == Major::mn, 16) | (spec.n >> 3) << 17 | (spec.m >> 4) << 24;
    if (is_block_scaled(spec.kind)) {
        // M has only two bits, 27 and 28. As it is 128 or 256, writing it from bit 24 on gives the same.
        bits |= spec.b_scale_id << 4 | bit(spec.scale == ScaleType::ue8m0, 23) | spec.a_scale_id << 29 |
                bit(spec.long_k, 31);
    } else {
        const std::uint32_t shift_code = spec.reuse_shift == 32 ? 3 : spec.reuse_shift / 8;
        bits |=
            spec.sparsity_selector | bit(spec.saturate, 3) | detail::accumulator_code(spec.d) << 4 | shift_code << 30;
    }
    return bits;
}

/// Returns the elements along K that one instruction multiplies.
TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t instruction_k(const MmaSpec& spec) noexcept
{
    std::uint32_t k = 32;
    switch (spec.kind) {
        case MmaKind::f16: k = 16; break;
        case MmaKind::tf32: k = 8; break;
        case MmaKind::f8f6f4:
        case MmaKind::i8:
        case MmaKind::mxf8f6f4: break;
        case MmaKind::mxf4:
        case MmaKind::mxf4nvf4: k = spec.long_k ? 96 : 64; break;
    }
    return spec.sparse ? 2 * k : k;
}

}  // namespace tessera
