#pragma once

/// The 32-bit instruction descriptor of tcgen05.mma: types, majors and shape of one matrix instruction.
///
///     constexpr auto instruction =
///         InstructionDescriptor::builder().shape<256, 128>().a<bf16>().b<bf16>().accumulate<f32>().build();
///
/// folds to 0x10200490. What the hardware refuses does not compile, with a sentence that says why: the hardware itself,
/// and ptxas, say nothing. `MmaSpec` is the same as plain values, for tables that are made at run time on the host.
///
/// Source: PTX ISA 9.0, "Instruction descriptor" and "Matrix shape" of tcgen05.

#include <cstdint>
#include <type_traits>

#include "tessera/detail/host_device.hpp"
#include "tessera/device/cta_group.hpp"
#include "tessera/device/smem_descriptor.hpp"
#include "tessera/element.hpp"

namespace tessera {

/// `.kind` of tcgen05.mma. The last three are block-scaled.
enum class MmaKind : std::uint8_t { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };

/// The type of A's or B's elements.
enum class OperandType : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, u8, s8 };

/// The type of D's elements.
enum class AccumulatorType : std::uint8_t { f16, f32, s32 };

/// The type of a block-scaled instruction's scale factors.
enum class ScaleType : std::uint8_t { none, ue8m0, ue4m3 };

/// The three forms of the instruction: A in shared memory, A in tensor memory, and weight-stationary (`.ws`).
enum class MmaForm : std::uint8_t { shared, tensor_memory_a, weight_stationary };

/// One matrix instruction as plain values.
struct MmaSpec {
    MmaKind kind = MmaKind::f16;               ///< which list the element types are of
    CtaGroup group = CtaGroup::one;            ///< who executes it
    MmaForm form = MmaForm::shared;            ///< where A is
    std::uint32_t m = 0;                       ///< of the whole instruction, both CTAs
    std::uint32_t n = 0;                       ///< of the whole instruction, both CTAs
    OperandType a = OperandType::f16;          ///< A's elements
    OperandType b = OperandType::f16;          ///< B's elements
    AccumulatorType d = AccumulatorType::f32;  ///< D's elements
    Major a_major = Major::k;                  ///< how A lies in shared memory
    Major b_major = Major::k;                  ///< how B lies in shared memory
    bool negate_a = false;                     ///< multiplies with -A
    bool negate_b = false;                     ///< multiplies with -B
    bool saturate = false;                     ///< clamps s32 instead of wrapping
    bool sparse = false;                       ///< `.sp`: A has half of its elements
    std::uint32_t sparsity_selector = 0;       ///< 0 to 3
    std::uint32_t reuse_shift = 0;             ///< `.ws`: 0, 8, 16 or 32
    ScaleType scale = ScaleType::none;         ///< block-scaled kinds
    std::uint32_t a_scale_id = 0;              ///< byte of the scale factors' word
    std::uint32_t b_scale_id = 0;              ///< byte of the scale factors' word
    bool long_k = false;                       ///< K = 96 instead of 64 (mxf4 kinds, sm_103a)
};

/// Why an instruction does not exist. Each has its sentence in `InstructionDescriptor`'s `build()`.
enum class MmaFault : std::uint8_t {
    none,
    types,
    mixed_16_bit,
    accumulator,
    m,
    n,
    n_transposed_8_bit,
    major_4_bit,
    major_tensor_memory,
    negated_integers,
    saturated_floats,
    selector,
    weight_stationary,
    weight_stationary_shape,
    reuse_shift,
    scale_type,
    scale_id,
    long_k,
};

/// True for the kinds that take scale factors.
TESSERA_DETAIL_HOST_DEVICE constexpr bool is_block_scaled(MmaKind kind) noexcept
{
    return kind == MmaKind::mxf8f6f4 || kind == MmaKind::mxf4 || kind == MmaKind::mxf4nvf4;
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
    if (spec.kind == MmaKind::mxf8f6f4) {
        return spec.a_scale_id <= 3 && spec.b_scale_id <= 3;
    }
    return (spec.a_scale_id == 0 || spec.a_scale_id == 2) && (spec.b_scale_id == 0 || spec.b_scale_id == 2);
}

TESSERA_DETAIL_HOST_DEVICE constexpr bool has_valid_scale_type(const MmaSpec& spec) noexcept
{
    if (!is_block_scaled(spec.kind)) {
        return spec.scale == ScaleType::none;
    }
    return spec.scale == ScaleType::ue8m0 || (spec.scale == ScaleType::ue4m3 && spec.kind == MmaKind::mxf4nvf4);
}

}  // namespace detail

/// The first rule that `spec` breaks.
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
    if (!detail::has_valid_scale_ids(spec)) {
        return MmaFault::scale_id;
    }
    if (spec.long_k && (!four_bit_kind || spec.sparse || spec.m != 256)) {
        return MmaFault::long_k;
    }
    return MmaFault::none;
}

/// The descriptor of an instruction without fault.
TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t instruction_bits(const MmaSpec& spec) noexcept
{
    const auto bit = [](bool value, unsigned position) { return static_cast<std::uint32_t>(value) << position; };
    std::uint32_t bits = bit(spec.sparse, 2) | detail::operand_code(spec.a, spec.kind) << 7 |
                         detail::operand_code(spec.b, spec.kind) << 10 | bit(spec.negate_a, 13) |
                         bit(spec.negate_b, 14) | bit(spec.a_major == Major::mn, 15) |
                         bit(spec.b_major == Major::mn, 16) | (spec.n >> 3) << 17 | (spec.m >> 4) << 24;
    if (is_block_scaled(spec.kind)) {
        // M has two bits only, 27 and 28: as it is 128 or 256, the same as writing it from bit 24 on.
        bits |= spec.b_scale_id << 4 | bit(spec.scale == ScaleType::ue8m0, 23) | spec.a_scale_id << 29 |
                bit(spec.long_k, 31);
    } else {
        const std::uint32_t shift_code = spec.reuse_shift == 32 ? 3 : spec.reuse_shift / 8;
        bits |=
            spec.sparsity_selector | bit(spec.saturate, 3) | detail::accumulator_code(spec.d) << 4 | shift_code << 30;
    }
    return bits;
}

/// Elements along K that one instruction multiplies.
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

/// A valid descriptor. Its kind and CTA group are part of the type, since they are part of the instruction's name.
template <MmaKind Kind, CtaGroup Group>
class MmaInstruction {
public:
    static constexpr MmaKind kind = Kind;     ///< `.kind`
    static constexpr CtaGroup group = Group;  ///< `.cta_group`

    /// For descriptors that were made at run time with `instruction_bits`, of a spec with this kind and group.
    TESSERA_DETAIL_HOST_DEVICE static constexpr MmaInstruction from_bits(std::uint32_t bits) noexcept
    {
        return MmaInstruction(bits);
    }
    /// What the instruction is given.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t bits() const noexcept { return bits_; }

private:
    TESSERA_DETAIL_HOST_DEVICE constexpr explicit MmaInstruction(std::uint32_t bits) noexcept : bits_(bits) {}

    std::uint32_t bits_;
};

namespace detail {

template <class T>
struct operand_type_of;
template <>
struct operand_type_of<f16> {
    static constexpr OperandType value = OperandType::f16;
};
template <>
struct operand_type_of<bf16> {
    static constexpr OperandType value = OperandType::bf16;
};
/// The tensor core reads the upper 19 bits of an f32.
template <>
struct operand_type_of<f32> {
    static constexpr OperandType value = OperandType::tf32;
};
template <>
struct operand_type_of<std::uint8_t> {
    static constexpr OperandType value = OperandType::u8;
};
template <>
struct operand_type_of<std::int8_t> {
    static constexpr OperandType value = OperandType::s8;
};

template <class T>
struct accumulator_type_of;
template <>
struct accumulator_type_of<f16> {
    static constexpr AccumulatorType value = AccumulatorType::f16;
};
template <>
struct accumulator_type_of<f32> {
    static constexpr AccumulatorType value = AccumulatorType::f32;
};
template <>
struct accumulator_type_of<std::int32_t> {
    static constexpr AccumulatorType value = AccumulatorType::s32;
};

/// The kind that multiplies plain (not block-scaled) elements of a type.
TESSERA_DETAIL_HOST_DEVICE constexpr MmaKind plain_kind(OperandType type) noexcept
{
    switch (type) {
        case OperandType::f16:
        case OperandType::bf16: return MmaKind::f16;
        case OperandType::tf32: return MmaKind::tf32;
        case OperandType::u8:
        case OperandType::s8: return MmaKind::i8;
        default: return MmaKind::f8f6f4;
    }
}

/// `Spec` so far; each call returns a builder of another type.
template <MmaSpec Spec>
struct InstructionBuilder {
    /// M and N of the whole instruction. M = 256 makes it one of a pair of CTAs.
    template <std::uint32_t M, std::uint32_t N>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto shape() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& spec) {
            spec.m = M;
            spec.n = N;
            spec.group = M == 256 ? CtaGroup::pair : spec.group;
        });
        return InstructionBuilder<next>{};
    }
    /// Who executes it; needed where M = 128 is meant for a pair.
    template <CtaGroup Group>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto group() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& spec) { spec.group = Group; });
        return InstructionBuilder<next>{};
    }
    /// A's elements. Sets the kind, too, unless it is block-scaled.
    template <OperandType Type>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto a() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& spec) {
            spec.a = Type;
            spec.kind = is_block_scaled(spec.kind) ? spec.kind : plain_kind(Type);
        });
        return InstructionBuilder<next>{};
    }
    /// A's elements.
    template <class Element>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto a() const noexcept
    {
        return a<operand_type_of<Element>::value>();
    }
    /// B's elements.
    template <OperandType Type>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto b() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& spec) { spec.b = Type; });
        return InstructionBuilder<next>{};
    }
    /// B's elements.
    template <class Element>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto b() const noexcept
    {
        return b<operand_type_of<Element>::value>();
    }
    /// D's elements.
    template <class Element>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto accumulate() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& spec) { spec.d = accumulator_type_of<Element>::value; });
        return InstructionBuilder<next>{};
    }
    /// How A and B lie in shared memory; K-major unless said.
    template <Major A, Major B>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto majors() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& spec) {
            spec.a_major = A;
            spec.b_major = B;
        });
        return InstructionBuilder<next>{};
    }
    /// Multiplies with -A, with -B.
    template <bool A, bool B>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto negate() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& spec) {
            spec.negate_a = A;
            spec.negate_b = B;
        });
        return InstructionBuilder<next>{};
    }
    /// Clamps integers instead of wrapping.
    TESSERA_DETAIL_HOST_DEVICE constexpr auto saturate() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& spec) { spec.saturate = true; });
        return InstructionBuilder<next>{};
    }
    /// `.sp`: half of A's elements, with metadata.
    template <std::uint32_t Selector = 0>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto sparse() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& spec) {
            spec.sparse = true;
            spec.sparsity_selector = Selector;
        });
        return InstructionBuilder<next>{};
    }
    /// A comes from tensor memory.
    TESSERA_DETAIL_HOST_DEVICE constexpr auto a_in_tensor_memory() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& spec) { spec.form = MmaForm::tensor_memory_a; });
        return InstructionBuilder<next>{};
    }
    /// `.ws`, with the largest shift of B's reuse.
    template <std::uint32_t Shift = 0>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto weight_stationary() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& spec) {
            spec.form = MmaForm::weight_stationary;
            spec.reuse_shift = Shift;
        });
        return InstructionBuilder<next>{};
    }
    /// `.block_scale` with scale factors of `Scale`, bytes `AId` and `BId` of their words in tensor memory.
    template <MmaKind Kind, ScaleType Scale, std::uint32_t AId = 0, std::uint32_t BId = 0>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto block_scale() const noexcept
    {
        static_assert(is_block_scaled(Kind), "tessera: block_scale is for the kinds mxf8f6f4, mxf4 and mxf4nvf4");
        constexpr MmaSpec next = with([](MmaSpec& spec) {
            spec.kind = Kind;
            spec.scale = Scale;
            spec.a_scale_id = AId;
            spec.b_scale_id = BId;
        });
        return InstructionBuilder<next>{};
    }
    /// K = 96 of the 4-bit kinds (sm_103a).
    TESSERA_DETAIL_HOST_DEVICE constexpr auto long_k() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& spec) { spec.long_k = true; });
        return InstructionBuilder<next>{};
    }

    /// The descriptor.
    TESSERA_DETAIL_HOST_DEVICE constexpr auto build() const noexcept
    {
        constexpr MmaFault fault = find_fault(Spec);
        static_assert(fault != MmaFault::types,
                      "tessera: A and B of one tcgen05 instruction are of one kind: f16/bf16, tf32, 8/6/4-bit floats, "
                      "or u8/s8; mxf4 and mxf4nvf4 take e2m1 only");
        static_assert(fault != MmaFault::mixed_16_bit,
                      "tessera: kind::f16 multiplies f16 with f16 or bf16 with bf16, not one with the other");
        static_assert(fault != MmaFault::accumulator,
                      "tessera: no such accumulator: bf16, tf32 and block-scaled kinds accumulate in f32, f16 and "
                      "8/6/4-bit floats in f32 or f16, integers in s32");
        static_assert(fault != MmaFault::m,
                      "tessera: M of a tcgen05 instruction is 64 or 128 for one CTA and 128 or 256 for a pair; "
                      "block-scaled kinds have no M = 64, nor, if sparse, M = 128 for a pair");
        static_assert(fault != MmaFault::n,
                      "tessera: N of a tcgen05 instruction is a multiple of 8 for one CTA and of 16 for a pair, up to "
                      "256; for integers 8, 16, 24, 32, 48, 64, ... and multiples of 32");
        static_assert(fault != MmaFault::n_transposed_8_bit,
                      "tessera: with 8-bit N-major B, N of a tcgen05 instruction is a multiple of 16 for one CTA and "
                      "of 32 for a pair");
        static_assert(fault != MmaFault::major_4_bit, "tessera: 4-bit and 6-bit elements must be K-major");
        static_assert(fault != MmaFault::major_tensor_memory, "tessera: A in tensor memory is K-major");
        static_assert(fault != MmaFault::negated_integers, "tessera: integers cannot be negated by tcgen05");
        static_assert(fault != MmaFault::saturated_floats, "tessera: saturate is for integers");
        static_assert(fault != MmaFault::selector,
                      "tessera: the sparsity selector is 0 to 3, and 0 for dense and for block-scaled instructions");
        static_assert(fault != MmaFault::weight_stationary,
                      "tessera: weight-stationary instructions are for one CTA and not for block-scaled kinds");
        static_assert(fault != MmaFault::weight_stationary_shape,
                      "tessera: a weight-stationary instruction has M = 32, 64 or 128 and N = 64, 128 or, if dense, "
                      "256");
        static_assert(fault != MmaFault::reuse_shift,
                      "tessera: the reuse shift is 0, 8, 16 or 32, and 0 unless weight-stationary");
        static_assert(fault != MmaFault::scale_type,
                      "tessera: mxf8f6f4 and mxf4 are scaled by ue8m0, mxf4nvf4 by ue8m0 or ue4m3, other kinds by "
                      "nothing");
        static_assert(fault != MmaFault::scale_id,
                      "tessera: a scale factor's id is 0 to 3 for mxf8f6f4, 0 or 2 for mxf4 and mxf4nvf4");
        static_assert(fault != MmaFault::long_k, "tessera: K = 96 is for dense mxf4 and mxf4nvf4 with M = 256");
        return MmaInstruction<Spec.kind, Spec.group>::from_bits(instruction_bits(Spec));
    }

    static constexpr MmaSpec spec = Spec;  ///< all choices so far

private:
    template <class Change>
    TESSERA_DETAIL_HOST_DEVICE static constexpr MmaSpec with(Change change) noexcept
    {
        MmaSpec changed = Spec;
        change(changed);
        return changed;
    }
};

}  // namespace detail

/// Where a descriptor begins.
struct InstructionDescriptor {
    /// An instruction for one CTA, operands K-major in shared memory; types and shape must follow.
    TESSERA_DETAIL_HOST_DEVICE static constexpr detail::InstructionBuilder<MmaSpec{}> builder() noexcept { return {}; }
};

}  // namespace tessera
