#pragma once

/// Matrix instructions of the fifth-generation tensor core (tcgen05.mma, sm_100a and its family), and how their
/// completion is announced.
///
/// One elected thread issues all instructions of a product and commits them. An instruction reads A and B from shared
/// memory through the asynchronous proxy and adds to an accumulator in tensor memory; both happen later. `commit` makes
/// a barrier track everything that the thread has issued so far.
///
/// Source: PTX ISA 9.0, "tcgen05.mma", "tcgen05.commit".

#include <cstdint>
#include <type_traits>

#include "tessera/device/barrier.cuh"
#include "tessera/device/instruction_descriptor.hpp"
#include "tessera/device/smem_descriptor.hpp"
#include "tessera/device/tmem.cuh"
#include "tessera/device/warp.cuh"

namespace tessera {

/// Whether an instruction adds to what the accumulator holds, or overwrites it.
enum class Accumulate : std::uint32_t { overwrite = 0, add = 1 };

namespace detail {

/// The instruction with the name `NAME`; one function of a template cannot have it as text otherwise.
#define TESSERA_DETAIL_TCGEN05_MMA(NAME)                  \
    asm volatile(                                         \
        "{\n\t"                                           \
        ".reg .pred p;\n\t"                               \
        "setp.ne.b32 p, %4, 0;\n\t"                       \
        "tcgen05.mma." NAME                               \
        " [%0], %1, %2, %3, p;\n\t"                       \
        "}" ::"r"(d),                                     \
        "l"(a), "l"(b), "r"(instruction), "r"(accumulate) \
        : "memory")

template <MmaKind Kind, CtaGroup Group>
__device__ __forceinline__ void tcgen05_mma(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                            std::uint32_t instruction, std::uint32_t accumulate)
{
    if constexpr (Kind == MmaKind::f16 && Group == CtaGroup::one) {
        TESSERA_DETAIL_TCGEN05_MMA("cta_group::1.kind::f16");
    } else if constexpr (Kind == MmaKind::f16) {
        TESSERA_DETAIL_TCGEN05_MMA("cta_group::2.kind::f16");
    } else if constexpr (Kind == MmaKind::tf32 && Group == CtaGroup::one) {
        TESSERA_DETAIL_TCGEN05_MMA("cta_group::1.kind::tf32");
    } else if constexpr (Kind == MmaKind::tf32) {
        TESSERA_DETAIL_TCGEN05_MMA("cta_group::2.kind::tf32");
    } else if constexpr (Kind == MmaKind::f8f6f4 && Group == CtaGroup::one) {
        TESSERA_DETAIL_TCGEN05_MMA("cta_group::1.kind::f8f6f4");
    } else if constexpr (Kind == MmaKind::f8f6f4) {
        TESSERA_DETAIL_TCGEN05_MMA("cta_group::2.kind::f8f6f4");
    } else if constexpr (Group == CtaGroup::one) {
        TESSERA_DETAIL_TCGEN05_MMA("cta_group::1.kind::i8");
    } else {
        TESSERA_DETAIL_TCGEN05_MMA("cta_group::2.kind::i8");
    }
}

#undef TESSERA_DETAIL_TCGEN05_MMA

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

/// D (M, N) = A (M, K) * B (K, N), or D += that. Asynchronous; executed by one thread, for a pair by one of its first
/// CTA. Instructions with the same accumulator and shape take effect in order.
///
/// The stages that A and B are in must not be overwritten, and D not be read, before a commit that follows is complete.
template <MmaKind Kind, CtaGroup Group, std::uint32_t Columns>
__device__ __forceinline__ void mma(const TmemAccumulator<Columns, Group>& d, Tcgen05Descriptor a, Tcgen05Descriptor b,
                                    MmaInstruction<Kind, Group> instruction, Accumulate accumulate)
{
    static_assert(!is_block_scaled(Kind), "tessera: this form of mma has no scale factors");
    detail::tcgen05_mma<Kind, Group>(d.address(), a.bits(), b.bits(), instruction.bits(),
                                     static_cast<std::uint32_t>(accumulate));
}

/// Arrives once at `barrier` when all instructions that the calling thread has issued so far are complete.
template <CtaGroup Group, class Kind>
__device__ __forceinline__ void commit(const Barrier<Kind, Ready>& barrier)
{
    static_assert(detail::takes_commits<Kind>,
                  "tessera: the tensor core commits to a barrier that is FreedByTensorCore or AccumulatorFull");
    detail::tcgen05_commit<Group>(barrier.word());
}

/// The same at the barrier with this offset in every CTA of `receivers`.
template <CtaGroup Group, class Kind>
__device__ __forceinline__ void commit(const Barrier<Kind, Ready>& barrier, CtaMask receivers)
{
    static_assert(detail::takes_commits<Kind>,
                  "tessera: the tensor core commits to a barrier that is FreedByTensorCore or AccumulatorFull");
    detail::tcgen05_commit_multicast<Group>(barrier.word(), receivers.bits());
}

}  // namespace tessera
