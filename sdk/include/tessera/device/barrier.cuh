#pragma once

/// Barriers in shared memory (mbarriers) whose type says who completes them and whether they may be used yet.
///
///     __shared__ BarrierWord word;
///     if (threadIdx.x == 0) {
///         Barrier<FilledByTma, Uninitialized>(word).initialize(1);  // one arrival completes a phase
///     }
///     const BarriersPublished published = publish_barriers();       // executed by all threads of the CTA
///     const Barrier<FilledByTma, Ready> loaded(word, published);    // may be waited for
///
/// A barrier cannot be waited for before it was published: only `publish_barriers` makes the token. Phases are not here
/// at all: they are values that the rings of pipeline.cuh keep.
///
/// Source: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".

#include <cuda/ptx>

#include <cstdint>
#include <type_traits>

#include "tessera/device/cluster.cuh"

namespace tessera {

/// @name Kinds: who completes a barrier's phase.
/// @{
/// TMA, when all announced bytes have landed, and one thread that announces them; perhaps threads that write, too.
struct FilledByTma {};
/// Threads that have written shared memory for the tensor core to read.
struct FilledByThreads {};
/// Threads that have read, or whose tensor core instructions have.
struct FreedByThreads {};
/// The tensor core, when it has finished all instructions committed to the barrier (tcgen05.commit).
struct FreedByTensorCore {};
/// The tensor core, when an accumulator in tensor memory is complete.
struct AccumulatorFull {};
/// Threads that have read an accumulator from tensor memory.
struct AccumulatorEmpty {};
/// Cluster launch control, when its answer has been written.
struct WorkAnswered {};
/// @}

/// @name States.
/// @{
/// Memory that is not a barrier yet.
struct Uninitialized {};
/// Initialized and visible to whoever uses it.
struct Ready {};
/// @}

/// The 8 bytes of shared memory that a barrier lives in.
struct alignas(8) BarrierWord {
    std::uint64_t bits;  ///< the hardware's
};

/// Proof that the barriers that were initialized before it are visible to all who may use them.
class BarriersPublished {
private:
    friend __device__ BarriersPublished publish_barriers();
    friend class BarriersAnnounced;
    __device__ BarriersPublished() {}
};

/// The calling thread has told the cluster that its CTA's barriers are initialized. Those of the other CTAs may not be.
class [[nodiscard("tessera: wait for announced barriers before you use them")]] BarriersAnnounced {
public:
    /// Waits until all threads of the cluster have announced. Executed by whole warps.
    __device__ BarriersPublished await() &&
    {
        cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
        return {};
    }

private:
    friend __device__ BarriersAnnounced announce_barriers_to_cluster();
    __device__ BarriersAnnounced() {}
};

/// Makes the barriers that this CTA's threads have initialized visible to all of the CTA, and to TMA. Synchronizes: all
/// threads of the CTA call it.
__device__ inline BarriersPublished publish_barriers()
{
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    __syncthreads();
    return {};
}

/// Begins to publish to all CTAs of the cluster, as is needed before a peer arrives at, or multicasts into, a barrier:
/// what a thread does between this and `await()` hides the wait. All threads of the cluster call both, in whole warps.
///
/// Nothing but the barriers is published: the arrival is relaxed, since a release at cluster scope waits for all that
/// the thread has written anywhere, some 500 cycles on an H200.
__device__ inline BarriersAnnounced announce_barriers_to_cluster()
{
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
    return {};
}

/// Makes the barriers visible to all CTAs of the cluster. All threads of the cluster call it, in whole warps.
__device__ inline BarriersPublished publish_barriers_to_cluster() { return announce_barriers_to_cluster().await(); }

template <class Kind, class State>
class Barrier {
    static_assert(!std::is_same_v<State, State>, "tessera: a barrier's state is Uninitialized or Ready");
};

/// Memory for a barrier.
template <class Kind>
class Barrier<Kind, Uninitialized> {
public:
    /// The barrier that will be in `word`, which is shared memory.
    __device__ explicit Barrier(BarrierWord& word) : word_(&word.bits) {}

    /// Executed by one thread. @param arrivals  how many complete a phase, from 1 to 2^20 - 1
    __device__ void initialize(std::uint32_t arrivals) && { cuda::ptx::mbarrier_init(word_, arrivals); }

    /// Does not compile.
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

/// A parity of a barrier's phase: which completion is waited for. Kept and advanced by the rings of pipeline.cuh.
enum class PhaseParity : std::uint32_t { even = 0, odd = 1 };

/// A barrier that all who may use it can see.
template <class Kind>
class Barrier<Kind, Ready> {
    static constexpr bool filled_by_tma = std::is_same_v<Kind, FilledByTma>;
    static constexpr bool takes_bytes = filled_by_tma || std::is_same_v<Kind, WorkAnswered>;
    static constexpr bool takes_threads = filled_by_tma || std::is_same_v<Kind, FilledByThreads> ||
                                          std::is_same_v<Kind, FreedByThreads> ||
                                          std::is_same_v<Kind, AccumulatorEmpty>;

public:
    /// The barrier in `word`.
    __device__ Barrier(BarrierWord& word, BarriersPublished) : word_(&word.bits) {}

    /// Waits until the phase of this parity is complete; what its completers did before is visible then. No thread does
    /// so alone while others of its warp go on: either the whole warp waits, and `elect_one` says who acts on it, or
    /// the others have exited. `exit_thread` in warp.cuh says why.
    __device__ void wait(PhaseParity parity) const
    {
        while (!cuda::ptx::mbarrier_try_wait_parity(word_, static_cast<std::uint32_t>(parity))) {
        }
    }

    /// Whether the phase is complete now. May say false although it is.
    __device__ bool try_wait(PhaseParity parity) const
    {
        return cuda::ptx::mbarrier_try_wait_parity(word_, static_cast<std::uint32_t>(parity));
    }

    /// Arrives once and announces `bytes` that will be written to shared memory asynchronously.
    __device__ void arrive_and_expect(std::uint32_t bytes) const
    {
        static_assert(takes_bytes, "tessera: only a barrier filled by TMA or by cluster launch control expects bytes");
        cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared,
                                             word_, bytes);
    }

    /// Arrives once. What the thread did before is visible to those who wait.
    __device__ void arrive() const
    {
        static_assert(takes_threads,
                      "tessera: threads do not arrive at a barrier that the tensor core completes: commit to it");
        cuda::ptx::mbarrier_arrive(word_);
    }

    /// Arrives once at the same barrier of a peer CTA, which must not have exited: the calling thread's part of reading
    /// is done. Orders earlier reads, not earlier writes, before what the peer does next: a release at cluster scope,
    /// which would order those too, costs a fence of the whole GPU (MEMBAR.ALL.GPU on sm_90).
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

    /// The hardware's word, for instructions that complete it.
    __device__ std::uint64_t* word() const { return word_; }

private:
    std::uint64_t* word_;
};

}  // namespace tessera
