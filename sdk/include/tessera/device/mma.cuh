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
/// multiply_slot(consumer, accumulator, [&](const auto& slot) {  // one thread: A (128, 64) and B (128, 64) have landed
///     const auto a_tile = operand_descriptor<Major::k>(a[slot.index()]);
///     const auto b_tile = operand_descriptor<Major::k>(b[slot.index()]);
///     for (std::uint32_t k = 0; k < 64; k += 16) {              // elements along K of an instruction
///         mma(accumulator, a_tile.from_k(k), b_tile.from_k(k), instruction,
///             k == 0 ? Accumulate::overwrite : Accumulate::add);
///     }
/// });                                                           // frees the slot when the tensor core has read it
/// @endcode
///
/// Source: PTX ISA 9.0, "tcgen05.mma", "tcgen05.cp", "tcgen05.commit".

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tessera/device/barrier.cuh"
#include "tessera/device/instruction_descriptor.hpp"
#include "tessera/device/pipeline.cuh"
#include "tessera/device/smem_descriptor.hpp"
#include "tessera/device/tma.cuh"
#include "tessera/device/tmem.cuh"
#include "tessera/device/warp.cuh"

namespace tessera {

/// Says whether an instruction adds to the accumulator or overwrites it.
enum class Accumulate : std::uint32_t {
    overwrite = 0,  ///< D = A * B
    add = 1         ///< D += A * B
};

namespace detail {

template <MmaShape Shape, CtaGroup Group, std::uint32_t Columns, CtaGroup GroupOfAccumulator>
__device__ __forceinline__ constexpr void require_accumulator()
{
    static_assert(Shape.n <= Columns,
                  "tessera: the instruction has more columns than the accumulator, and would write over its neighbour: "
                  "shape<M, N>() of the builder has N, accumulator<Columns>() must have as many");
    static_assert(
        Group == GroupOfAccumulator,
        "tessera: one of instruction and accumulator is a pair's, the other one CTA's: M = 256 or group<CtaGroup>() "
        "of the builder says whose the instruction is, Tmem's third argument whose tensor memory is");
}

/// Bytes of an element in shared memory, as layouts count it.
__device__ constexpr std::uint32_t bytes_in_shared(OperandType type)
{
    switch (type) {
        case OperandType::f16:
        case OperandType::bf16: return 2;
        case OperandType::tf32: return 4;
        default: return 1;
    }
}

/// @tparam Rows  what the instruction reads in one CTA
template <class Layout, Major Expected, std::uint32_t Rows, std::uint32_t ElementBytes>
__device__ __forceinline__ constexpr void require_operand()
{
    static_assert(!std::is_same_v<Layout, AnyLayout>,
                  "tessera: this descriptor's layout was chosen at run time, and so must the instruction be: "
                  "AnyMmaInstruction");
    if constexpr (!std::is_same_v<Layout, AnyLayout>) {
        constexpr TileLayout tile = Layout::layout;
        static_assert(tile.major == Expected,
                      "tessera: the tile is K-major and the instruction reads it MN-major, or the reverse: "
                      "majors<A, B>() of the builder must be those of the layouts");
        static_assert(tile.element_bytes == ElementBytes,
                      "tessera: the tile's elements are larger or smaller than those that the instruction multiplies");
        static_assert(
            tile.rows >= Rows,
            "tessera: the instruction reads more rows than the tile has: shape<M, N>() of the builder says how "
            "many; of a pair, each CTA has half of M and half of N");
    }
}

template <MmaSpec Spec, class Layout>
__device__ __forceinline__ constexpr void require_a()
{
    constexpr std::uint32_t ctas = Spec.group == CtaGroup::pair ? 2 : 1;
    require_operand<Layout, Spec.a_major, Spec.m / ctas, bytes_in_shared(Spec.a)>();
}
template <MmaSpec Spec, class Layout>
__device__ __forceinline__ constexpr void require_b()
{
    constexpr std::uint32_t ctas = Spec.group == CtaGroup::pair ? 2 : 1;
    require_operand<Layout, Spec.b_major, Spec.n / ctas, bytes_in_shared(Spec.b)>();
}

template <MmaSpec Spec>
__device__ __forceinline__ constexpr void require_dense()
{
    static_assert(!Spec.sparse, "tessera: a sparse instruction needs metadata of A, which mma does not have");
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

/// Returns the descriptor of a tile that TMA fills, for tcgen05.mma.
/// @tparam MajorAxis  Major::k if the box's first extent is along K, Major::mn if it is along M or N
template <Major MajorAxis, class T, std::uint32_t Contiguous, std::uint32_t Lines, Swizzle Pattern>
__device__ __forceinline__ auto operand_descriptor(const SharedTile<T, Box<Contiguous, Lines>, Pattern>& tile)
{
    constexpr std::uint32_t rows = MajorAxis == Major::k ? Lines : Contiguous;
    constexpr std::uint32_t k = MajorAxis == Major::k ? Contiguous : Lines;
    return tcgen05_descriptor<SharedLayout<MajorAxis, Pattern, rows, k, sizeof(T)>>(
        detail::shared_address(tile.raw_swizzled_bytes()));
}

/// Issues D (M, N) = A (M, K) * B (K, N), or D += that, with A and B in shared memory. Asynchronous; called by one
/// thread, for a pair by one thread of its first CTA. Instructions with the same accumulator and shape take effect in
/// order.
///
/// The stages of A and B must not be overwritten, and D must not be read, before a later commit is complete.
///
/// @param d            the accumulator: (M, N) in fp32, f16 or s32
/// @param a            descriptor of A's tile: (M, K); for a pair, of the CTA's half of the rows
/// @param b            descriptor of B's tile: (N, K); for a pair, of the CTA's half of the rows
/// @param instruction  kind, types, shape and majors, from `InstructionDescriptor::builder()`
/// @param accumulate   add to D or overwrite it
template <MmaSpec Spec, std::uint32_t Columns, CtaGroup Group, class LayoutA, class LayoutB>
__device__ __forceinline__ void mma(const TmemAccumulator<Columns, Group>& d,
                                    SmemDescriptor<TensorCore::tcgen05, LayoutA> a,
                                    SmemDescriptor<TensorCore::tcgen05, LayoutB> b, MmaInstruction<Spec> instruction,
                                    Accumulate accumulate)
{
    detail::require_accumulator<MmaShape{Spec.m, Spec.n}, Spec.group, Columns, Group>();
    detail::require_dense<Spec>();
    static_assert(!is_block_scaled(Spec.kind),
                  "tessera: a block-scaled instruction takes the scale factors of A and of B");
    static_assert(Spec.form == MmaForm::shared,
                  "tessera: this form of mma is for A in shared memory, and not for weight-stationary instructions");
    detail::require_a<Spec, LayoutA>();
    detail::require_b<Spec, LayoutB>();
    detail::tcgen05_mma<Spec.kind, Group>(d.address(), a.bits(), b.bits(), instruction.bits(),
                                          static_cast<std::uint32_t>(accumulate));
}

/// Issues an instruction whose types and majors were chosen at run time, like the layouts of its operands.
template <MmaKind Kind, CtaGroup Group, MmaShape Shape, std::uint32_t Columns, CtaGroup GroupOfAccumulator>
__device__ __forceinline__ void mma(const TmemAccumulator<Columns, GroupOfAccumulator>& d, Tcgen05Descriptor<> a,
                                    Tcgen05Descriptor<> b, AnyMmaInstruction<Kind, Group, Shape> instruction,
                                    Accumulate accumulate)
{
    detail::require_accumulator<Shape, Group, Columns, GroupOfAccumulator>();
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
template <MmaSpec Spec, std::uint32_t Columns, CtaGroup Group, std::uint32_t Steps, class LayoutB>
__device__ __forceinline__ void mma(const TmemAccumulator<Columns, Group>& d, const TmemOperand<Steps, Group>& a,
                                    std::uint32_t step, SmemDescriptor<TensorCore::tcgen05, LayoutB> b,
                                    MmaInstruction<Spec> instruction, Accumulate accumulate)
{
    detail::require_accumulator<MmaShape{Spec.m, Spec.n}, Spec.group, Columns, Group>();
    detail::require_dense<Spec>();
    static_assert(!is_block_scaled(Spec.kind), "tessera: mma has no form for scale factors with A in tensor memory");
    static_assert(Spec.form == MmaForm::tensor_memory_a,
                  "tessera: an instruction with A in tensor memory is built with a_in_tensor_memory()");
    detail::require_b<Spec, LayoutB>();
    detail::tcgen05_mma<Spec.kind, Group>(d.address(), a.address(step), b.bits(), instruction.bits(),
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
template <MmaSpec Spec, std::uint32_t Columns, CtaGroup Group, class LayoutA, class LayoutB, ScaledOperand AOperand,
          ScaledOperand BOperand, std::uint32_t ARows, std::uint32_t BRows>
__device__ __forceinline__ void mma(const TmemAccumulator<Columns, Group>& d,
                                    SmemDescriptor<TensorCore::tcgen05, LayoutA> a,
                                    SmemDescriptor<TensorCore::tcgen05, LayoutB> b, MmaInstruction<Spec> instruction,
                                    const TmemScales<AOperand, ARows, Group>& a_scales,
                                    const TmemScales<BOperand, BRows, Group>& b_scales, Accumulate accumulate)
{
    detail::require_accumulator<MmaShape{Spec.m, Spec.n}, Spec.group, Columns, Group>();
    detail::require_dense<Spec>();
    static_assert(is_block_scaled(Spec.kind), "tessera: only block-scaled kinds take scale factors");
    static_assert(Spec.form == MmaForm::shared, "tessera: mma has no form for scale factors with A in tensor memory");
    static_assert(AOperand == ScaledOperand::a && BOperand == ScaledOperand::b,
                  "tessera: the scale factors of A come before those of B");
    static_assert(ARows == detail::scale_rows, "tessera: a CTA needs scale factors for its 128 rows of A");
    static_assert(BRows >= Spec.n, "tessera: there are fewer scale factors of B than columns of the instruction");
    detail::require_a<Spec, LayoutA>();
    detail::require_b<Spec, LayoutB>();
    detail::tcgen05_mma_scaled<Spec.kind, Group, scale_vector_of(Spec)>(
        d.address(), a.bits(), b.bits(), instruction.bits(), a_scales.address(), b_scales.address(),
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
    const Tcgen05Descriptor<> first = tcgen05_descriptor(block, address);
#pragma unroll
    for (std::uint32_t i = 0; i < SharedScales<Rows>::blocks; ++i) {
        detail::tcgen05_copy_scales<Group>(to.address() + i * detail::scale_block_columns,
                                           first.advanced(i * detail::scale_block_bytes).bits());
    }
}

/// Arrives once at `barrier` when all instructions that the calling thread has issued so far are complete. Does not
/// wait.
/// @param d        an accumulator of the instructions: it says whether they were one CTA's or a pair's
/// @param barrier  FreedByTensorCore or AccumulatorFull
template <std::uint32_t Columns, CtaGroup Group, class Kind>
__device__ __forceinline__ void commit([[maybe_unused]] const TmemAccumulator<Columns, Group>& d,
                                       const Barrier<Kind>& barrier)
{
    static_assert(detail::takes_commits<Kind>,
                  "tessera: the tensor core commits to a barrier that is FreedByTensorCore or AccumulatorFull");
    detail::tcgen05_commit<Group>(barrier.word());
}
/// Arrives once at the barrier with this offset in every CTA of `receivers`.
template <std::uint32_t Columns, CtaGroup Group, class Kind>
__device__ __forceinline__ void commit([[maybe_unused]] const TmemAccumulator<Columns, Group>& d,
                                       const Barrier<Kind>& barrier, ReadyCtas receivers)
{
    static_assert(detail::takes_commits<Kind>,
                  "tessera: the tensor core commits to a barrier that is FreedByTensorCore or AccumulatorFull");
    detail::tcgen05_commit_multicast<Group>(barrier.word(), receivers.bits());
}

namespace detail {

template <class Ring, CtaGroup Group, class... Receivers>
__device__ __forceinline__ constexpr void require_ring_of()
{
    static_assert(
        Ring::group == Group,
        "tessera: one of ring and accumulator is a pair's, the other one CTA's: the fourth argument of RingBarriers "
        "says whose the ring is, Tmem's third whose tensor memory is");
    static_assert(
        Group == CtaGroup::one || sizeof...(Receivers) == 1,
        "tessera: both CTAs of a pair wait for its products: name them, published.ready(cluster.my_column())");
}

}  // namespace detail

/// Ends the reading of a stage: it is free when all instructions that the elected thread has issued so far are complete.
/// Called by the whole warp of that thread.
/// @param slot       the stage, of a ring that is FreedByTensorCore
/// @param d          an accumulator of the instructions
/// @param elected    true in the thread that issued them
/// @param receivers  the CTAs in which the stage is free then: all whose loads fill it. None: the own
template <class Ring, std::uint32_t Columns, CtaGroup Group, class... Receivers>
__device__ __forceinline__ void release_after_mma(ReadSlot<Ring>&& slot, const TmemAccumulator<Columns, Group>& d,
                                                  bool elected, Receivers... receivers)
{
    detail::require_ring_of<Ring, Group, Receivers...>();
    if (elected) {
        commit(d, detail::SlotBarriers::empty(slot), receivers...);
    }
    detail::SlotBarriers::spend(slot);
}

/// Ends the writing of an accumulator: it is complete when all instructions that the elected thread has issued so far are.
/// Called by the whole warp of that thread.
/// @param slot       the accumulator's, of a ring that is AccumulatorFull
/// @param d          the accumulator
/// @param elected    true in the thread that issued them
/// @param receivers  the CTAs that hold a part of it: a pair. None: the own
template <class Ring, std::uint32_t Columns, CtaGroup Group, class... Receivers>
__device__ __forceinline__ void publish_after_mma(FillSlot<Ring>&& slot, const TmemAccumulator<Columns, Group>& d,
                                                  bool elected, Receivers... receivers)
{
    detail::require_ring_of<Ring, Group, Receivers...>();
    if (elected) {
        commit(d, detail::SlotBarriers::full(slot), receivers...);
    }
    detail::SlotBarriers::spend(slot);
}

/// Multiplies the next stage of a ring: waits until it is filled, calls `issue(slot)` in one thread, and frees the stage when
/// the instructions that it issued are complete. Called by the whole, converged warp; for a pair, by one of its first CTA.
/// @param consumer   of a ring that is FreedByTensorCore
/// @param d          the accumulator of the instructions
/// @param issue      calls `mma`; gets a `const ReadSlot&`
/// @param receivers  as for `release_after_mma`
template <class Ring, std::uint32_t Columns, CtaGroup Group, class Issue, class... Receivers>
__device__ __forceinline__ void multiply_slot(RingConsumer<Ring>& consumer, const TmemAccumulator<Columns, Group>& d,
                                              Issue issue, Receivers... receivers)
{
    auto slot = consumer.wait();
    tcgen05_fence_after_sync();
    const bool elected = elect_one();
    if (elected) {
        const ReadSlot<Ring>& reading = slot;
        issue(reading);
    }
    release_after_mma(std::move(slot), d, elected, receivers...);
}

}  // namespace tessera
