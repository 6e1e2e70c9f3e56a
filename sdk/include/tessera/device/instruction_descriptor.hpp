#pragma once

/// @file
/// @ingroup device_mma
/// @brief The 32-bit instruction descriptor of tcgen05.mma: types, majors and shape of one matrix instruction.
///
/// @code{.cpp}
/// constexpr auto instruction = InstructionDescriptor::builder()
///                                  .shape<256, 128>()
///                                  .a<bf16>()
///                                  .b<bf16>()
///                                  .accumulate<f32>()
///                                  .build();
/// static_assert(instruction.bits() == 0x10200490);
/// @endcode
///
/// What the hardware refuses does not compile, with a sentence that says why: neither the hardware nor ptxas gives a
/// reason. `MmaSpec` (mma_spec.hpp) is the same as plain values, for tables that the host makes at run time.

#include <cstdint>
#include <type_traits>

#include "tessera/detail/host_device.hpp"
#include "tessera/device/mma_spec.hpp"
#include "tessera/element.hpp"

namespace tessera {

/// A valid instruction. All that is said of it is part of the type, so that `mma` takes no operands that it does not fit.
/// @tparam Spec  the instruction
template <MmaSpec Spec>
class MmaInstruction {
    static_assert(find_fault(Spec) == MmaFault::none,
                  "tessera: InstructionDescriptor::builder() makes instructions, and says what is wrong with one");

public:
    static constexpr MmaSpec spec = Spec;  ///< kind, types, shape, majors, ...

    /// Returns the bits that the instruction takes.
    TESSERA_DETAIL_HOST_DEVICE static constexpr std::uint32_t bits() noexcept { return instruction_bits(Spec); }

    /// Returns the same instruction with the scale factors of step `Step` along K. A 32-bit word of tensor memory has
    /// the factors of four steps at 1X, of two at 2X, of one at 4X. The builder's ids must be 0.
    template <std::uint32_t Step>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto with_scales_of_step() const noexcept
    {
        constexpr auto of_step = static_cast<std::uint32_t>(scale_vector_of(Spec));
        static_assert(is_block_scaled(Spec.kind), "tessera: this kind has no scale factors");
        static_assert((Step + 1) * of_step <= 4,
                      "tessera: one word holds scale factors for four steps along K at 1X, two at 2X, one at 4X");
        if constexpr (is_block_scaled(Spec.kind) && (Step + 1) * of_step <= 4) {
            constexpr MmaSpec changed = [] {
                MmaSpec next = Spec;
                next.a_scale_id = next.b_scale_id = Step * of_step;
                return next;
            }();
            return MmaInstruction<changed>{};
        } else {
            return *this;
        }
    }
};

/// An instruction on K-major or MN-major operands of a kind, which are chosen at run time. `mma` takes it with descriptors of
/// AnyLayout: nothing checks that they fit.
/// @tparam Kind   the list of element types
/// @tparam Group  one CTA or a pair
/// @tparam Shape  M and N
template <MmaKind Kind, CtaGroup Group, MmaShape Shape>
class AnyMmaInstruction {
    static_assert(!is_block_scaled(Kind),
                  "tessera: a block-scaled instruction is made by InstructionDescriptor::builder()");

public:
    /// Returns an instruction from the bits of a spec with these facts (`instruction_bits`).
    TESSERA_DETAIL_HOST_DEVICE static constexpr AnyMmaInstruction from_bits(std::uint32_t bits) noexcept
    {
        return AnyMmaInstruction(bits);
    }
    /// Returns the bits that the instruction takes.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t bits() const noexcept { return bits_; }

private:
    TESSERA_DETAIL_HOST_DEVICE constexpr explicit AnyMmaInstruction(std::uint32_t bits) noexcept : bits_(bits) {}

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

/// Returns the kind that multiplies plain (not block-scaled) elements of a type.
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

/// The choices so far; each call returns a builder of another type.
template <MmaSpec Spec>
struct InstructionBuilder {
    /// Sets M and N of the whole instruction. M = 256 makes it one for a pair of CTAs.
    template <std::uint32_t M, std::uint32_t N>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto shape() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) {
            changed.m = M;
            changed.n = N;
            changed.group = M == 256 ? CtaGroup::pair : changed.group;
        });
        return InstructionBuilder<next>{};
    }
    /// Sets who executes it; needed if M = 128 is meant for a pair.
    template <CtaGroup Group>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto group() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) { changed.group = Group; });
        return InstructionBuilder<next>{};
    }
    /// Sets the type of A's elements, and the kind unless it is block-scaled.
    template <OperandType Type>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto a() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) {
            changed.a = Type;
            changed.kind = is_block_scaled(changed.kind) ? changed.kind : plain_kind(Type);
        });
        return InstructionBuilder<next>{};
    }
    /// Sets the type of A's elements.
    template <class Element>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto a() const noexcept
    {
        return a<operand_type_of<Element>::value>();
    }
    /// Sets the type of B's elements.
    template <OperandType Type>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto b() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) { changed.b = Type; });
        return InstructionBuilder<next>{};
    }
    /// Sets the type of B's elements.
    template <class Element>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto b() const noexcept
    {
        return b<operand_type_of<Element>::value>();
    }
    /// Sets the type of D's elements.
    template <class Element>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto accumulate() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) { changed.d = accumulator_type_of<Element>::value; });
        return InstructionBuilder<next>{};
    }
    /// Sets the contiguous directions of A and B in shared memory; the default is K-major.
    template <Major A, Major B>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto majors() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) {
            changed.a_major = A;
            changed.b_major = B;
        });
        return InstructionBuilder<next>{};
    }
    /// Sets whether A and B are negated.
    template <bool A, bool B>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto negate() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) {
            changed.negate_a = A;
            changed.negate_b = B;
        });
        return InstructionBuilder<next>{};
    }
    /// Makes integer sums clamp instead of wrap.
    TESSERA_DETAIL_HOST_DEVICE constexpr auto saturate() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) { changed.saturate = true; });
        return InstructionBuilder<next>{};
    }
    /// Makes A sparse (`.sp`): it has half of its elements, with metadata.
    template <std::uint32_t Selector = 0>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto sparse() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) {
            changed.sparse = true;
            changed.sparsity_selector = Selector;
        });
        return InstructionBuilder<next>{};
    }
    /// Takes A from tensor memory.
    TESSERA_DETAIL_HOST_DEVICE constexpr auto a_in_tensor_memory() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) { changed.form = MmaForm::tensor_memory_a; });
        return InstructionBuilder<next>{};
    }
    /// Makes the instruction weight-stationary (`.ws`), with the largest shift of B's reuse.
    template <std::uint32_t Shift = 0>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto weight_stationary() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) {
            changed.form = MmaForm::weight_stationary;
            changed.reuse_shift = Shift;
        });
        return InstructionBuilder<next>{};
    }
    /// Makes the instruction block-scaled (`.block_scale`) with scale factors of type `Scale`, in bytes `AId` and `BId`
    /// of their words in tensor memory.
    template <MmaKind Kind, ScaleType Scale, std::uint32_t AId = 0, std::uint32_t BId = 0>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto block_scale() const noexcept
    {
        static_assert(is_block_scaled(Kind), "tessera: block_scale is for the kinds mxf8f6f4, mxf4 and mxf4nvf4");
        constexpr MmaSpec next = with([](MmaSpec& changed) {
            changed.kind = Kind;
            changed.scale = Scale;
            changed.a_scale_id = AId;
            changed.b_scale_id = BId;
        });
        return InstructionBuilder<next>{};
    }
    /// Sets the number of scale factors of each row for one instruction, where the kind leaves a choice: mxf4nvf4 with
    /// ue8m0.
    template <ScaleVector Vector>
    TESSERA_DETAIL_HOST_DEVICE constexpr auto scale_vector() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) { changed.scale_vector = Vector; });
        return InstructionBuilder<next>{};
    }
    /// Selects K = 96 for the 4-bit kinds (sm_103a).
    TESSERA_DETAIL_HOST_DEVICE constexpr auto long_k() const noexcept
    {
        constexpr MmaSpec next = with([](MmaSpec& changed) { changed.long_k = true; });
        return InstructionBuilder<next>{};
    }

    /// Returns the descriptor, or does not compile if the instruction breaks a rule.
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
        static_assert(fault != MmaFault::scale_vector,
                      "tessera: a row has one scale factor for an instruction of mxf8f6f4 (1X), two for mxf4 (2X), for "
                      "mxf4nvf4 two of ue8m0 (2X) or four of either type (4X)");
        static_assert(fault != MmaFault::scale_id,
                      "tessera: a scale factor's id is 0 to 3 for mxf8f6f4, 0 or 2 for mxf4 and mxf4nvf4, 0 at 4X");
        static_assert(fault != MmaFault::long_k, "tessera: K = 96 is for dense mxf4 and mxf4nvf4 with M = 256");
        if constexpr (fault == MmaFault::none) {
            return MmaInstruction<Spec>{};
        }
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

/// The start of a descriptor.
struct InstructionDescriptor {
    /// Returns a builder of an instruction for one CTA with K-major operands in shared memory. Types and shape must
    /// follow.
    ///
    /// Its functions are `shape<M, N>()`, `group<CtaGroup>()`, `a<T>()`, `b<T>()`, `accumulate<T>()`, `majors<A, B>()`,
    /// `negate<A, B>()`, `saturate()`, `sparse()`, `a_in_tensor_memory()`, `weight_stationary()`, `block_scale<Kind,
    /// Scale>()`, `scale_vector<Vector>()`, `long_k()`, and at the end `build()`, which returns an MmaInstruction.
    TESSERA_DETAIL_HOST_DEVICE static constexpr detail::InstructionBuilder<MmaSpec{}> builder() noexcept { return {}; }
};

}  // namespace tessera
