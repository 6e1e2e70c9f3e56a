#pragma once

/// @file
/// @ingroup device_barriers
/// @brief Barriers in shared memory (mbarriers): who completes one is part of its type, and it cannot be used before it is
/// published.
///
/// `Barrier` has an example. Most kernels need only the rings of pipeline.cuh.
///
/// Source: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".

#include <cuda/ptx>

#include <cstdint>
#include <type_traits>

#include "tessera/device/cluster.cuh"
#include "tessera/device/cta_group.hpp"

namespace tessera {

/// Kind of a barrier: completed by TMA when all announced bytes have landed, and by one thread that announces them.
/// Other threads that write may arrive, too.
struct FilledByTma {};
/// Kind of a barrier: completed by threads that have written shared memory for the tensor core to read.
struct FilledByThreads {};
/// Kind of a barrier: completed by threads that have read, or whose tensor core instructions have.
struct FreedByThreads {};
/// Kind of a barrier: completed by the tensor core when it has finished all instructions committed to it
/// (tcgen05.commit).
struct FreedByTensorCore {};
/// Kind of a barrier: completed by the tensor core when an accumulator in tensor memory is complete.
struct AccumulatorFull {};
/// Kind of a barrier: completed by threads that have read an accumulator from tensor memory.
struct AccumulatorEmpty {};
/// Kind of a barrier: completed by cluster launch control when its answer has been written.
struct WorkAnswered {};

/// The 8 bytes of shared memory of a barrier. `publish_barriers` makes a barrier of them, and a `Barrier` can use them then.
/// @tparam Kind  who completes a phase: FilledByTma, FilledByThreads, FreedByThreads, FreedByTensorCore, AccumulatorFull,
///               AccumulatorEmpty or WorkAnswered
template <class Kind>
struct alignas(8) BarrierWord {
    std::uint64_t bits;  ///< opaque: the hardware's state

    /// Refuses to compile: the memory may not be a barrier yet.
    template <class Phase>
    __device__ void wait(Phase) const
    {
        static_assert(!std::is_same_v<Phase, Phase>,
                      "tessera: this is the memory of a barrier: initialize it in publish_barriers(), and wait for a "
                      "Barrier, which takes the token that publish_barriers() returns");
    }
};

/// What initializes barriers: only `publish_barriers` and its cluster forms have one, and give it to their argument.
class BarrierInitializer {
public:
    BarrierInitializer(const BarrierInitializer&) = delete;
    BarrierInitializer& operator=(const BarrierInitializer&) = delete;

    /// Makes a barrier of `word`.
    /// @param word      in shared memory
    /// @param arrivals  the number that completes a phase, 1 to 2^20 - 1
    template <class Kind>
    __device__ void initialize(BarrierWord<Kind>& word, std::uint32_t arrivals) const
    {
        cuda::ptx::mbarrier_init(&word.bits, arrivals);
    }

private:
    friend class BarriersPublished;
    __device__ BarrierInitializer() {}
};

class BarriersAnnounced;

/// Proof that the CTA's barriers are initialized and visible to its threads and to TMA.
class BarriersPublished {
private:
    template <class Initialize>
    friend __device__ BarriersPublished publish_barriers(Initialize initialize);
    template <class Initialize>
    friend __device__ BarriersAnnounced announce_barriers_to_cluster(Initialize initialize);
    friend class BarriersPublishedToCluster;
    __device__ BarriersPublished() {}

    /// Initializes, and makes that visible to whom the caller synchronizes with.
    template <class Initialize>
    __device__ static void initialize_in_one_thread(Initialize& initialize)
    {
        if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
            initialize(BarrierInitializer());
        }
        __syncwarp();
        cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }
};

/// A CTA of the cluster whose barriers are published: threads of other CTAs may arrive at them.
class ReadyCta {
public:
    /// Returns its rank in the cluster.
    __device__ std::uint32_t value() const { return rank_.value(); }

private:
    friend class BarriersPublishedToCluster;
    __device__ explicit ReadyCta(CtaRank rank) : rank_(rank) {}

    CtaRank rank_;
};

/// CTAs of the cluster whose barriers are published: they may receive a multicast.
class ReadyCtas {
public:
    /// Returns the set as bits: bit i is the CTA with rank i, as instructions take it.
    __device__ std::uint16_t bits() const { return mask_.bits(); }

private:
    friend class BarriersPublishedToCluster;
    __device__ explicit ReadyCtas(CtaMask mask) : mask_(mask) {}

    CtaMask mask_;
};

/// Proof that this holds for all CTAs of the cluster, which therefore run.
class BarriersPublishedToCluster : public BarriersPublished {
public:
    /// Returns a CTA as one whose barriers may be used.
    __device__ ReadyCta ready(CtaRank cta) const { return ReadyCta(cta); }
    /// Returns CTAs as those whose barriers may be used.
    __device__ ReadyCtas ready(CtaMask ctas) const { return ReadyCtas(ctas); }

private:
    friend class BarriersAnnounced;
    __device__ BarriersPublishedToCluster() {}
};

/// Proof that the calling thread has announced its CTA's barriers to the cluster. Those of other CTAs may not be
/// initialized yet.
class [[nodiscard("tessera: wait for announced barriers before you use them")]] BarriersAnnounced {
public:
    /// Waits until all threads of the cluster have announced. Called by all threads of the cluster, in whole, converged
    /// warps.
    __device__ BarriersPublishedToCluster await() &&
    {
        cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
        return {};
    }

private:
    template <class Initialize>
    friend __device__ BarriersAnnounced announce_barriers_to_cluster(Initialize initialize);
    __device__ BarriersAnnounced() {}
};

/// Initializes barriers and makes them visible to the CTA and to TMA. Synchronizes: all threads of the CTA call it, in whole,
/// converged warps.
/// @param initialize  called in one thread with a `const BarrierInitializer&`, which the rings and barriers take
template <class Initialize>
__device__ BarriersPublished publish_barriers(Initialize initialize)
{
    BarriersPublished::initialize_in_one_thread(initialize);
    __syncthreads();
    return {};
}

/// Initializes barriers and begins to publish them to all CTAs of the cluster. This is needed before a peer arrives at a
/// barrier or multicasts into the slot that it guards. What a thread does between this call and `await()` hides the wait. All
/// threads of the cluster call both, in whole, converged warps.
///
/// Only the barriers are published: the arrival is relaxed. A release at cluster scope would wait for all that the
/// thread has written anywhere, which takes some 500 cycles on an H200.
/// @param initialize  as for `publish_barriers`
template <class Initialize>
__device__ BarriersAnnounced announce_barriers_to_cluster(Initialize initialize)
{
    BarriersPublished::initialize_in_one_thread(initialize);
    cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
    return {};
}

/// Initializes barriers and makes them visible to all CTAs of the cluster. Synchronizes: all threads of the cluster call it, in
/// whole, converged warps.
/// @param initialize  as for `publish_barriers`
template <class Initialize>
__device__ BarriersPublishedToCluster publish_barriers_to_cluster(Initialize initialize)
{
    return announce_barriers_to_cluster(initialize).await();
}

/// Where TMA counts the bytes of a load. A slot of a ring and a `Barrier<FilledByTma>` have one.
/// @tparam Group  pair: the barrier is that of the pair's first CTA
template <CtaGroup Group>
class ByteCounter {
public:
    /// Returns the hardware's word, in the calling CTA.
    __device__ std::uint64_t* word() const { return word_; }

private:
    template <class>
    friend class Barrier;
    template <class>
    friend class FillSlot;
    __device__ explicit ByteCounter(std::uint64_t* word) : word_(word) {}

    std::uint64_t* word_;
};

namespace detail {

/// Arrives once at the barrier with this offset in the CTA with this rank.
__device__ __forceinline__ void arrive_in(std::uint32_t rank, const std::uint64_t* word)
{
    // cuda::ptx has neither mapa nor an arrival that takes a 32-bit cluster address.
    asm volatile(
        "{\n\t"
        ".reg .b32 remote;\n\t"
        "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t"
        "}" ::"r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(word))),
        "r"(rank)
        : "memory");
}

}  // namespace detail

/// The parity of a barrier's phase: which completion a wait is for. The rings of pipeline.cuh keep and advance it.
enum class PhaseParity : std::uint32_t {
    even = 0,  ///< the first phase, the third, ...
    odd = 1    ///< the second phase, the fourth, ...
};

/// A barrier in shared memory that is published: initialized, and visible to all who may use it.
///
/// @code{.cpp}
/// __shared__ BarrierWord<FilledByTma> word;
/// const auto published = publish_barriers([&](const BarrierInitializer& by) {  // all threads; one calls this
///     by.initialize(word, 1);                                                  // one arrival per phase
/// });
/// const Barrier loaded(word, published);
/// loaded.wait(PhaseParity::even);                                              // a whole warp
/// @endcode
///
/// Kernels need not keep phases: the rings of pipeline.cuh do.
///
/// @tparam Kind  who completes a phase: that of the BarrierWord
template <class Kind>
class Barrier {
    static constexpr bool filled_by_tma = std::is_same_v<Kind, FilledByTma>;
    static constexpr bool takes_bytes = filled_by_tma || std::is_same_v<Kind, WorkAnswered>;
    static constexpr bool takes_threads = filled_by_tma || std::is_same_v<Kind, FilledByThreads> ||
                                          std::is_same_v<Kind, FreedByThreads> ||
                                          std::is_same_v<Kind, AccumulatorEmpty>;

public:
    /// Names the barrier in `word`.
    __device__ Barrier(BarrierWord<Kind>& word, BarriersPublished) : word_(&word.bits) {}

    /// Waits until the phase of this parity is complete. What its completers did before is visible then (acquire at CTA
    /// scope).
    ///
    /// No thread waits alone while others of its warp continue. Either the whole warp waits and `elect_one` chooses who
    /// acts, or the others have exited: `exit_thread` in warp.cuh says why.
    __device__ void wait(PhaseParity parity) const
    {
        while (!cuda::ptx::mbarrier_try_wait_parity(word_, static_cast<std::uint32_t>(parity))) {
        }
    }

    /// Returns true if the phase is complete now, and does not wait: what its completers did is visible then, as after `wait`.
    /// False says nothing.
    __device__ bool try_wait(PhaseParity parity) const
    {
        // Not PTX's try_wait, which may wait for microseconds.
        return cuda::ptx::mbarrier_test_wait_parity(word_, static_cast<std::uint32_t>(parity));
    }

    /// Arrives once and announces `bytes` that will be written to shared memory asynchronously (release at CTA scope).
    /// Called by one thread. For FilledByTma and WorkAnswered.
    __device__ void arrive_and_expect(std::uint32_t bytes) const
    {
        static_assert(takes_bytes, "tessera: only a barrier filled by TMA or by cluster launch control expects bytes");
        cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared,
                                             word_, bytes);
    }

    /// Arrives once. What the thread did before is visible to those who wait (release at CTA scope). For kinds that
    /// threads complete.
    __device__ void arrive() const
    {
        static_assert(takes_threads,
                      "tessera: threads do not arrive at a barrier that the tensor core completes: commit to it");
        cuda::ptx::mbarrier_arrive(word_);
    }

    /// Arrives once at the same barrier of a peer CTA: the calling thread's part of reading is done. The peer must not
    /// have exited.
    ///
    /// Orders earlier reads, not earlier writes, before what the peer does next. A release at cluster scope would order
    /// writes, too, but costs a fence of the whole GPU (MEMBAR.ALL.GPU on sm_90).
    __device__ void arrive_at(ReadyCta peer) const
    {
        static_assert(takes_threads,
                      "tessera: threads do not arrive at a barrier that the tensor core completes: commit to it");
        detail::arrive_in(peer.value(), word_);
    }

    /// Completes `bytes` of those that the same barrier of a peer CTA expects, without a copy: the peer's phase waits
    /// for the calling thread, too. Orders no memory access. The peer must not have exited. For FilledByTma.
    __device__ void complete_bytes_at(ReadyCta peer, std::uint32_t bytes) const
    {
        static_assert(filled_by_tma, "tessera: only a barrier filled by TMA counts bytes from a peer");
        // cuda::ptx has no complete_tx.
        const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(word_));
        asm volatile(
            "{\n\t"
            ".reg .b32 remote;\n\t"
            "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
            "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [remote], %2;\n\t"
            "}" ::"r"(address),
            "r"(peer.value()), "r"(bytes)
            : "memory");
    }

    /// Returns where TMA counts the bytes of a load that it completes. For FilledByTma.
    __device__ ByteCounter<CtaGroup::one> bytes() const
    {
        static_assert(filled_by_tma, "tessera: a TMA load is counted at a barrier that is FilledByTma");
        return ByteCounter<CtaGroup::one>(word_);
    }

    /// Returns the hardware's word, for instructions that complete it.
    __device__ std::uint64_t* word() const { return word_; }

private:
    std::uint64_t* word_;
};

}  // namespace tessera
