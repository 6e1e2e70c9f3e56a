#pragma once

/// @file
/// @ingroup device_barriers
/// @brief Barriers in shared memory (mbarriers) whose type says who completes them and whether they may be used yet.
///
/// `Barrier` has an example. Most kernels need only the rings of pipeline.cuh.
///
/// Source: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".

#include <cuda/ptx>

#include <cstdint>
#include <type_traits>

#include "tessera/device/cluster.cuh"

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

/// State of a barrier: memory that is not a barrier yet.
struct Uninitialized {};
/// State of a barrier: initialized, and visible to all who may use it.
struct Ready {};

/// The 8 bytes of shared memory of a barrier.
struct alignas(8) BarrierWord {
    std::uint64_t bits;  ///< opaque: the hardware's state
};

/// Proof that the barriers that were initialized before are visible to all who may use them.
class BarriersPublished {
private:
    friend __device__ BarriersPublished publish_barriers();
    friend class BarriersPublishedToCluster;
    __device__ BarriersPublished() {}
};

/// Proof that this holds for the barriers of all CTAs of the cluster, which therefore run.
class BarriersPublishedToCluster : public BarriersPublished {
public:
    /// Returns the proof that every thread of the cluster has arrived.
    __device__ ClusterArrived arrived() const { return {}; }

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
    friend __device__ BarriersAnnounced announce_barriers_to_cluster();
    __device__ BarriersAnnounced() {}
};

/// Makes the barriers that this CTA's threads have initialized visible to the CTA and to TMA. Synchronizes: all threads
/// of the CTA call it.
__device__ inline BarriersPublished publish_barriers()
{
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    __syncthreads();
    return {};
}

/// Begins to publish barriers to all CTAs of the cluster. This is needed before a peer arrives at a barrier or
/// multicasts into the slot that it guards. What a thread does between this call and `await()` hides the wait. All
/// threads of the cluster call both, in whole, converged warps.
///
/// Only the barriers are published: the arrival is relaxed. A release at cluster scope would wait for all that the
/// thread has written anywhere, which takes some 500 cycles on an H200.
__device__ inline BarriersAnnounced announce_barriers_to_cluster()
{
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
    return {};
}

/// Makes the barriers visible to all CTAs of the cluster. Synchronizes: all threads of the cluster call it, in whole,
/// converged warps.
__device__ inline BarriersPublishedToCluster publish_barriers_to_cluster()
{
    return announce_barriers_to_cluster().await();
}

/// A barrier in shared memory.
///
/// @code{.cpp}
/// __shared__ BarrierWord word;
/// if (threadIdx.x == 0) {
///     Barrier<FilledByTma, Uninitialized>(word).initialize(1);  // one arrival per phase
/// }
/// const BarriersPublished published = publish_barriers();       // all threads of the CTA
/// const Barrier<FilledByTma, Ready> loaded(word, published);
/// loaded.wait(PhaseParity::even);                               // a whole warp
/// @endcode
///
/// A barrier cannot be waited for before it was published: only `publish_barriers` and its cluster forms make the
/// token. Kernels need not keep phases: the rings of pipeline.cuh do.
///
/// @tparam Kind   who completes a phase: FilledByTma, FilledByThreads, FreedByThreads, FreedByTensorCore,
///                AccumulatorFull, AccumulatorEmpty or WorkAnswered
/// @tparam State  Uninitialized or Ready
template <class Kind, class State>
class Barrier {
    static_assert(!std::is_same_v<State, State>, "tessera: a barrier's state is Uninitialized or Ready");
};

/// Memory for a barrier: it can be initialized, and nothing else.
/// @tparam Kind  who will complete a phase
template <class Kind>
class Barrier<Kind, Uninitialized> {
public:
    /// Names the barrier that will be in `word`, which is shared memory.
    __device__ explicit Barrier(BarrierWord& word) : word_(&word.bits) {}

    /// Initializes the barrier. Called by one thread; `publish_barriers` makes it visible to the others.
    /// @param arrivals  the number that completes a phase, 1 to 2^20 - 1
    __device__ void initialize(std::uint32_t arrivals) && { cuda::ptx::mbarrier_init(word_, arrivals); }

    /// Refuses to compile: the barrier is not initialized.
    template <class Phase>
    __device__ void wait(Phase) const
    {
        static_assert(!std::is_same_v<Phase, Phase>,
                      "tessera: this barrier is not initialized: initialize it, then publish_barriers(), then wait for "
                      "Barrier<Kind, Ready>");
    }

private:
    std::uint64_t* word_;
};

/// The parity of a barrier's phase: which completion a wait is for. The rings of pipeline.cuh keep and advance it.
enum class PhaseParity : std::uint32_t {
    even = 0,  ///< the first phase, the third, ...
    odd = 1    ///< the second phase, the fourth, ...
};

/// A barrier that is visible to all who may use it.
/// @tparam Kind  who completes a phase
template <class Kind>
class Barrier<Kind, Ready> {
    static constexpr bool filled_by_tma = std::is_same_v<Kind, FilledByTma>;
    static constexpr bool takes_bytes = filled_by_tma || std::is_same_v<Kind, WorkAnswered>;
    static constexpr bool takes_threads = filled_by_tma || std::is_same_v<Kind, FilledByThreads> ||
                                          std::is_same_v<Kind, FreedByThreads> ||
                                          std::is_same_v<Kind, AccumulatorEmpty>;

public:
    /// Names the barrier in `word`.
    __device__ Barrier(BarrierWord& word, BarriersPublished) : word_(&word.bits) {}

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

    /// Returns true if the phase is complete now. May return false although it is.
    __device__ bool try_wait(PhaseParity parity) const
    {
        return cuda::ptx::mbarrier_try_wait_parity(word_, static_cast<std::uint32_t>(parity));
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
    __device__ void arrive_at(CtaRank peer) const
    {
        static_assert(takes_threads,
                      "tessera: threads do not arrive at a barrier that the tensor core completes: commit to it");
        // cuda::ptx has neither mapa nor an arrival that takes a 32-bit cluster address.
        const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(word_));
        asm volatile(
            "{\n\t"
            ".reg .b32 remote;\n\t"
            "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
            "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t"
            "}" ::"r"(address),
            "r"(peer.value())
            : "memory");
    }

    /// Completes `bytes` of those that the same barrier of a peer CTA expects, without a copy: the peer's phase waits
    /// for the calling thread, too. Orders no memory access. The peer must not have exited. For FilledByTma.
    __device__ void complete_bytes_at(CtaRank peer, std::uint32_t bytes) const
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

    /// Returns the hardware's word, for instructions that complete it.
    __device__ std::uint64_t* word() const { return word_; }

private:
    std::uint64_t* word_;
};

}  // namespace tessera
