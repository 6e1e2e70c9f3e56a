#pragma once

/// @file
/// @ingroup device_mma
/// @brief Matrix instructions of the fifth-generation tensor core (tcgen05.mma, sm_100a and its family), and their
/// completion.
///
/// One elected thread issues all instructions of a product and commits them. An instruction reads A and B from shared
/// memory through the asynchronous proxy (or A from tensor memory) and accumulates in tensor memory. All of that
/// happens later; `commit` makes a barrier track everything that the thread has issued so far.
///
/// @code{.cpp}
/// constexpr auto instruction = InstructionDescriptor::builder()
///                                  .shape<128, 128>()
///                                  .a<bf16>()
///                                  .b<bf16>()
///                                  .accumulate<f32>()
///                                  .build();
///
/// auto slot = consumer.wait();  // the whole warp: A (128, 64) and B (128, 64) have landed
/// const auto a_tile = tcgen05_descriptor<Layout>(shared_address(a[slot.index()]));
/// const auto b_tile = tcgen05_descriptor<Layout>(shared_address(b[slot.index()]));
/// if (elect_one()) {
///     for (std::uint32_t k = 0; k < 64; k += 16) {  // elements along K of an instruction
///         const std::uint32_t bytes = Layout::k_offset(k);
///         mma(accumulator, a_tile.advanced(bytes), b_tile.advanced(bytes), instruction,
///             k == 0 ? Accumulate::overwrite : Accumulate::add);
///     }
///     commit<CtaGroup::one>(slot.empty());  // frees the slot when the tensor core has read it
/// }
/// std::move(slot).release_by_other();
/// @endcode
///
/// Source: PTX ISA 9.0, "tcgen05.mma", "tcgen05.cp", "tcgen05.commit".

#include <cstdint>
#include <type_traits>

#include "tessera/device/barrier.cuh"
#include "tessera/device/instruction_descriptor.hpp"
#include "tessera/device/smem_descriptor.hpp"
#include "tessera/device/tmem.cuh"
#include "tessera/device/warp.cuh"

namespace tessera {

/// Says whether an instruction adds to the accumulator or overwrites it.
enum class Accumulate : std::uint32_t {
    overwrite = 0,  ///< D = A * B
    add = 1         ///< D += A * B
};

namespace detail {

template <MmaShape Shape, std::uint32_t Columns>
__device__ __forceinline__ constexpr void require_columns()
{
    static_assert(Shape.n <= Columns,
                  "tessera: the instruction has more columns than the accumulator, and would write over its neighbour: "
                  "shape<M, N>() of the builder has N, accumulator<Columns>() must have as many");
}

// The instruction's name is text, which a template cannot make: hence macros, of this file only. A is a descriptor
// ("l") or an address in tensor memory ("r").
#define TESSERA_DETAIL_TCGEN05_MMA(NAME, A, CONSTRAINT)          \
    asm volatile(                                                \
        "{\n\t"                                                  \
        ".reg .pred p;\n\t"                                      \
        "setp.ne.b32 p, %4, 0;\n\t"                              \
        "tcgen05.mma.cta_group::" NAME " [%0], " A               \
        ", %2, %3, p;\n\t"                                       \
        "}" ::"r"(d),                                            \
        CONSTRAINT(a), "l"(b), "r"(instruction), "r"(accumulate) \
        : "memory")
#define TESSERA_DETAIL_TCGEN05_MMA_KINDS(A, CONSTRAINT)                       \
    if constexpr (Kind == MmaKind::f16 && Group == CtaGroup::one) {           \
        TESSERA_DETAIL_TCGEN05_MMA("1.kind::f16", A, CONSTRAINT);             \
    } else if constexpr (Kind == MmaKind::f16) {                              \
        TESSERA_DETAIL_TCGEN05_MMA("2.kind::f16", A, CONSTRAINT);             \
    } else if constexpr (Kind == MmaKind::tf32 && Group == CtaGroup::one) {   \
        TESSERA_DETAIL_TCGEN05_MMA("1.kind::tf32", A, CONSTRAINT);            \
    } else if constexpr (Kind == MmaKind::tf32) {                             \
        TESSERA_DETAIL_TCGEN05_MMA("2.kind::tf32", A, CONSTRAINT);            \
    } else if constexpr (Kind == MmaKind::f8f6f4 && Group == CtaGroup::one) { \
        TESSERA_DETAIL_TCGEN05_MMA("1.kind::f8f6f4", A, CONSTRAINT);          \
    } else if constexpr (Kind == MmaKind::f8f6f4) {                           \
        TESSERA_DETAIL_TCGEN05_MMA("2.kind::f8f6f4", A, CONSTRAINT);          \
    } else if constexpr (Group == CtaGroup::one) {                            \
        TESSERA_DETAIL_TCGEN05_MMA("1.kind::i8", A, CONSTRAINT);              \
    } else {                                                                  \
        TESSERA_DETAIL_TCGEN05_MMA("2.kind::i8", A, CONSTRAINT);              \
    }

template <MmaKind Kind, CtaGroup Group>
__device__ __forceinline__ void tcgen05_mma(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                            std::uint32_t instruction, std::uint32_t accumulate)
{
    TESSERA_DETAIL_TCGEN05_MMA_KINDS("%1", "l")
}

/// The same instruction with A in tensor memory.
template <MmaKind Kind, CtaGroup Group>
__device__ __forceinline__ void tcgen05_mma(std::uint32_t d, std::uint32_t a, std::uint64_t b,
                                            std::uint32_t instruction, std::uint32_t accumulate)
{
    TESSERA_DETAIL_TCGEN05_MMA_KINDS("[%1]", "r")
}

#undef TESSERA_DETAIL_TCGEN05_MMA_KINDS
#undef TESSERA_DETAIL_TCGEN05_MMA

#define TESSERA_DETAIL_TCGEN05_MMA_SCALED(NAME)                                         \
    asm volatile(                                                                       \
        "{\n\t"                                                                         \
        ".reg .pred p;\n\t"                                                             \
        "setp.ne.b32 p, %6, 0;\n\t"                                                     \
        "tcgen05.mma.cta_group::" NAME                                                  \
        " [%0], %1, %2, %3, [%4], [%5], p;\n\t"                                         \
        "}" ::"r"(d),                                                                   \
        "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales), "r"(accumulate) \
        : "memory")

/// `.block32` is `.scale_vec::1X` of mxf8f6f4 and `2X` of the 4-bit kinds, `.block16` is `4X`: the names that targets
/// of a whole family accept (ptxas 13.0).
template <MmaKind Kind, CtaGroup Group, ScaleVector Vector>
__device__ __forceinline__ void tcgen05_mma_scaled(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                                   std::uint32_t instruction, std::uint32_t a_scales,
                                                   std::uint32_t b_scales, std::uint32_t accumulate)
{
    if constexpr (Kind == MmaKind::mxf8f6f4 && Group == CtaGroup::one) {
        TESSERA_DETAIL_TCGEN05_MMA_SCALED("1.kind::mxf8f6f4.block_scale.block32");
    } else if constexpr (Kind == MmaKind::mxf8f6f4) {
        TESSERA_DETAIL_TCGEN05_MMA_SCALED("2.kind::mxf8f6f4.block_scale.block32");
    } else if constexpr (Kind == MmaKind::mxf4 && Group == CtaGroup::one) {
        TESSERA_DETAIL_TCGEN05_MMA_SCALED("1.kind::mxf4.block_scale.block32");
    } else if constexpr (Kind == MmaKind::mxf4) {
        TESSERA_DETAIL_TCGEN05_MMA_SCALED("2.kind::mxf4.block_scale.block32");
    } else if constexpr (Vector == ScaleVector::x2 && Group == CtaGroup::one) {
        TESSERA_DETAIL_TCGEN05_MMA_SCALED("1.kind::mxf4nvf4.block_scale.block32");
    } else if constexpr (Vector == ScaleVector::x2) {
        TESSERA_DETAIL_TCGEN05_MMA_SCALED("2.kind::mxf4nvf4.block_scale.block32");
    } else if constexpr (Group == CtaGroup::one) {
        TESSERA_DETAIL_TCGEN05_MMA_SCALED("1.kind::mxf4nvf4.block_scale.block16");
    } else {
        TESSERA_DETAIL_TCGEN05_MMA_SCALED("2.kind::mxf4nvf4.block_scale.block16");
    }
}

#undef TESSERA_DETAIL_TCGEN05_MMA_SCALED

/// Copies 32 rows of 16 bytes to all four parts of 32 lanes.
template <CtaGroup Group>
__device__ __forceinline__ void tcgen05_copy_scales(std::uint32_t to, std::uint64_t from)
{
    if constexpr (Group == CtaGroup::one) {
        asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from) : "memory");
    } else {
        asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from) : "memory");
    }
}

template <CtaGroup Group>
__device__ __forceinline__ void tcgen05_commit(const std::uint64_t* barrier)
{
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(barrier));
    if constexpr (Group == CtaGroup::one) {
        asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(address)
                     : "memory");
    } else {
        asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(address)
                     : "memory");
    }
}

template <CtaGroup Group>
__device__ __forceinline__ void tcgen05_commit_multicast(const std::uint64_t* barrier, std::uint16_t mask)
{
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(barrier));
    if constexpr (Group == CtaGroup::one) {
        asm volatile(
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
                address),
            "h"(mask)
            : "memory");
    } else {
        asm volatile(
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
                address),
            "h"(mask)
            : "memory");
    }
}

template <class Kind>
inline constexpr bool takes_commits = std::is_same_v<Kind, FreedByTensorCore> || std::is_same_v<Kind, AccumulatorFull>;

}  // namespace detail

/// Issues D (M, N) = A (M, K) * B (K, N), or D += that, with A and B in shared memory. Asynchronous; called by one
/// thread, for a pair by one thread of its first CTA. Instructions with the same accumulator and shape take effect in
/// order.
///
/// The stages of A and B must not be overwritten, and D must not be read, before a later commit is complete.
///
/// @param d            the accumulator: (M, N) in fp32, f16 or s32
/// @param a            descriptor of A's tile: (M, K)
/// @param b            descriptor of B's tile: (N, K)
/// @param instruction  kind, types, shape and majors, from `InstructionDescriptor::builder()`
/// @param accumulate   add to D or overwrite it
template <MmaKind Kind, CtaGroup Group, MmaForm Form, ScaleVector Vector, MmaShape Shape, std::uint32_t Columns>
__device__ __forceinline__ void mma(const TmemAccumulator<Columns, Group>& d, Tcgen05Descriptor a, Tcgen05Descriptor b,
                                    MmaInstruction<Kind, Group, Form, Vector, Shape> instruction, Accumulate accumulate)
{
    detail::require_columns<Shape, Columns>();
    static_assert(!is_block_scaled(Kind), "tessera: a block-scaled instruction takes the scale factors of A and of B");
    static_assert(Form == MmaForm::shared,
                  "tessera: this form of mma is for A in shared memory, and not for weight-stationary instructions");
    detail::tcgen05_mma<Kind, Group>(d.address(), a.bits(), b.bits(), instruction.bits(),
                                     static_cast<std::uint32_t>(accumulate));
}

/// Issues the same with A in tensor memory.
/// @param d            the accumulator
/// @param a            A in tensor memory
/// @param step         which part of A along K, in instructions
/// @param b            descriptor of B's tile
/// @param instruction  built with `a_in_tensor_memory()`
/// @param accumulate   add to D or overwrite it
template <MmaKind Kind, CtaGroup Group, MmaForm Form, ScaleVector Vector, MmaShape Shape, std::uint32_t Columns,
          std::uint32_t Steps>
__device__ __forceinline__ void mma(const TmemAccumulator<Columns, Group>& d, const TmemOperand<Steps, Group>& a,
                                    std::uint32_t step, Tcgen05Descriptor b,
                                    MmaInstruction<Kind, Group, Form, Vector, Shape> instruction, Accumulate accumulate)
{
    detail::require_columns<Shape, Columns>();
    static_assert(!is_block_scaled(Kind), "tessera: mma has no form for scale factors with A in tensor memory");
    static_assert(Form == MmaForm::tensor_memory_a,
                  "tessera: an instruction with A in tensor memory is built with a_in_tensor_memory()");
    detail::tcgen05_mma<Kind, Group>(d.address(), a.address(step), b.bits(), instruction.bits(),
                                     static_cast<std::uint32_t>(accumulate));
}

/// Issues D = (A * scales) * (B * scales), or D += that, for the kinds mxf8f6f4, mxf4 and mxf4nvf4. Asynchronous;
/// called by one thread, which must have issued `copy_scales` before.
///
/// For an instruction's K, each row of A and each column of B has 1, 2 or 4 scale factors. Tensor memory has four of
/// them for each; `instruction.with_scales_of_step` selects. Elements of 4 bits are packed in pairs for mxf4 and
/// mxf4nvf4, the first in the low half of a byte; shared layouts count bytes. For a pair, M is 256.
///
/// @param d            the accumulator
/// @param a            descriptor of A's tile
/// @param b            descriptor of B's tile
/// @param instruction  built with `block_scale`
/// @param a_scales     scale factors of the CTA's 128 rows of A
/// @param b_scales     scale factors of all columns of B
/// @param accumulate   add to D or overwrite it
template <MmaKind Kind, CtaGroup Group, MmaForm Form, ScaleVector Vector, MmaShape Shape, std::uint32_t Columns,
          ScaledOperand AOperand, ScaledOperand BOperand, std::uint32_t ARows, std::uint32_t BRows>
__device__ __forceinline__ void mma(const TmemAccumulator<Columns, Group>& d, Tcgen05Descriptor a, Tcgen05Descriptor b,
                                    MmaInstruction<Kind, Group, Form, Vector, Shape> instruction,
                                    const TmemScales<AOperand, ARows, Group>& a_scales,
                                    const TmemScales<BOperand, BRows, Group>& b_scales, Accumulate accumulate)
{
    detail::require_columns<Shape, Columns>();
    static_assert(is_block_scaled(Kind), "tessera: only block-scaled kinds take scale factors");
    static_assert(Form == MmaForm::shared, "tessera: mma has no form for scale factors with A in tensor memory");
    static_assert(AOperand == ScaledOperand::a && BOperand == ScaledOperand::b,
                  "tessera: the scale factors of A come before those of B");
    static_assert(ARows == detail::scale_rows, "tessera: a CTA needs scale factors for its 128 rows of A");
    static_assert(BRows >= Columns, "tessera: there are fewer scale factors of B than columns of the accumulator");
    detail::tcgen05_mma_scaled<Kind, Group, Vector>(d.address(), a.bits(), b.bits(), instruction.bits(),
                                                    a_scales.address(), b_scales.address(),
                                                    static_cast<std::uint32_t>(accumulate));
}

/// Copies scale factors from shared to tensor memory; for a pair, each CTA copies its own from this address.
/// Asynchronous; called by the thread that issues the MMAs, before the instructions that need the factors.
/// @pre `from` has been made visible to the asynchronous proxy (`make_visible_to_tma`). It must not be overwritten
///      before a later commit is complete.
template <ScaledOperand Operand, std::uint32_t Rows, CtaGroup Group>
__device__ __forceinline__ void copy_scales(const TmemScales<Operand, Rows, Group>& to, const SharedScales<Rows>& from)
{
    constexpr TileLayout block{Major::k, Swizzle::none, 32, 16, 1};
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(from.bytes));
    const Tcgen05Descriptor first = tcgen05_descriptor(block, address);
#pragma unroll
    for (std::uint32_t i = 0; i < SharedScales<Rows>::blocks; ++i) {
        detail::tcgen05_copy_scales<Group>(to.address() + i * detail::scale_block_columns,
                                           first.advanced(i * detail::scale_block_bytes).bits());
    }
}

/// Arrives once at `barrier` when all instructions that the calling thread has issued so far are complete. Does not
/// wait.
/// @tparam Group  one CTA or a pair, as in the instructions
/// @param barrier  FreedByTensorCore or AccumulatorFull
template <CtaGroup Group, class Kind>
__device__ __forceinline__ void commit(const Barrier<Kind, Ready>& barrier)
{
    static_assert(detail::takes_commits<Kind>,
                  "tessera: the tensor core commits to a barrier that is FreedByTensorCore or AccumulatorFull");
    detail::tcgen05_commit<Group>(barrier.word());
}

/// Arrives once at the barrier with this offset in every CTA of `receivers`.
template <CtaGroup Group, class Kind>
__device__ __forceinline__ void commit(const Barrier<Kind, Ready>& barrier, CtaMask receivers)
{
    static_assert(detail::takes_commits<Kind>,
                  "tessera: the tensor core commits to a barrier that is FreedByTensorCore or AccumulatorFull");
    detail::tcgen05_commit_multicast<Group>(barrier.word(), receivers.bits());
}

}  // namespace tessera
