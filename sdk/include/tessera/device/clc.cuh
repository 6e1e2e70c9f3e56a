#pragma once

/// @file
/// @ingroup device_clusters
/// @brief Work queues of persistent kernels: a cluster takes one work tile after the other until none is left.
///
/// The work tiles are the clusters of a one-dimensional grid, numbered from 0. Four queues have one interface:
///
/// | queue | grid | who gets which work tile |
/// |---|---|---|
/// | `SingleWorkQueue` | as large as the work | each cluster computes its own |
/// | `StaticWorkQueue` | smaller than the work | cluster i computes i, i + clusters, i + 2 clusters, ... |
/// | `ClcWorkQueue` | as large as the work | running clusters take over those that have not started |
/// | `StreamKWorkQueue` | any | cluster i computes the i-th part of all steps along K: parts of tiles and whole ones |
///
/// `ClcWorkQueue` uses cluster launch control (compute capability 10.0). A `WorkItem` is a work tile that only the
/// calling cluster has; only queues make one.
///
/// @code{.cpp}
/// ClcWorkQueue<1, 2> queue(clc, published);
/// for (WorkItem work = queue.first(); work; work = queue.next_of_warp()) {  // whole warps
///     store(partition.tile(work));
/// }
/// @endcode
///
/// Source: PTX ISA 9.0, "clusterlaunchcontrol.try_cancel", "clusterlaunchcontrol.query_cancel".

#include <cuda/ptx>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tessera/device/pipeline.cuh"
#include "tessera/device/stream_k.hpp"
#include "tessera/device/warp.cuh"

namespace tessera {

/// A work tile, or none. Not copyable: the cluster that has one computes it.
class WorkItem {
public:
    WorkItem(const WorkItem&) = delete;
    WorkItem& operator=(const WorkItem&) = delete;
    /// Moves the work tile. None is left in `other`.
    __device__ WorkItem(WorkItem&& other) noexcept : index_(other.index_), exists_(other.exists_)
    {
        other.exists_ = false;
    }
    /// Moves the work tile. None is left in `other`.
    __device__ WorkItem& operator=(WorkItem&& other) noexcept
    {
        const bool exists = other.exists_;
        other.exists_ = false;
        index_ = other.index_;
        exists_ = exists;
        return *this;
    }

    /// Returns true if there is work.
    __device__ explicit operator bool() const { return exists_; }
    /// Returns the number of the work tile, from 0.
    __device__ std::uint32_t index() const { return index_; }

private:
    friend class SingleWorkQueue;
    friend class StaticWorkQueue;
    friend class StreamKWorkQueue;
    template <std::uint32_t, std::uint32_t>
    friend class ClcWorkQueue;
    __device__ WorkItem() : index_(0), exists_(false) {}
    __device__ explicit WorkItem(std::uint32_t index) : index_(index), exists_(true) {}

    std::uint32_t index_;
    bool exists_;
};

/// One work tile for each cluster of the grid.
class SingleWorkQueue {
public:
    /// Returns the cluster's own work tile.
    __device__ WorkItem first() const { return WorkItem(cuda::ptx::get_sreg_clusterid_x()); }
    /// Returns no work.
    __device__ WorkItem next_of_warp() { return {}; }
};

/// Work tile i is computed by cluster i % clusters.
class StaticWorkQueue {
public:
    /// A queue of `units` work tiles.
    /// @param units  the number of work tiles
    __device__ explicit StaticWorkQueue(std::uint32_t units) : units_(units), index_(cuda::ptx::get_sreg_clusterid_x())
    {}

    /// Returns the cluster's own work tile. The grid must not be larger than the work.
    __device__ WorkItem first() const { return WorkItem(index_); }
    /// Returns the cluster's next work tile, or none.
    __device__ WorkItem next_of_warp()
    {
        index_ += cuda::ptx::get_sreg_nclusterid_x();
        return index_ < units_ ? WorkItem(index_) : WorkItem();
    }

private:
    std::uint32_t units_;
    std::uint32_t index_;
};

/// A work tile, or a range of its steps along K.
struct WorkPart {
    WorkItem item;             ///< the tile, or none
    std::uint32_t first_step;  ///< of the tile
    std::uint32_t steps;       ///< all of the tile's, unless other clusters share it

    /// Returns true if there is work.
    __device__ explicit operator bool() const { return static_cast<bool>(item); }
};

/// Parts of work tiles, of equal numbers of steps for each cluster. Only the first and the last part of a cluster may be of a
/// tile that others share.
class StreamKWorkQueue {
public:
    /// Clusters that share a tile: those from the first to the last.
    struct Sharers {
        std::uint32_t first;  ///< the cluster that has the tile's first step
        std::uint32_t last;   ///< the cluster that has its last step
    };

    /// The calling thread's cluster's parts.
    /// @param split  for as many clusters as the grid has
    __device__ explicit StreamKWorkQueue(const StreamKSplit& split)
        : split_(split), next_(split.begin_of(cluster())), end_(split.begin_of(cluster() + 1))
    {}

    /// Index of the calling thread's cluster in the grid.
    __device__ static std::uint32_t cluster() { return cuda::ptx::get_sreg_clusterid_x(); }

    /// Returns the cluster's first part.
    __device__ WorkPart first() { return next_of_warp(); }
    /// Returns the cluster's next part, or none.
    __device__ WorkPart next_of_warp()
    {
        if (next_ >= end_) {
            return {.item = WorkItem(), .first_step = 0, .steps = 0};
        }
        const std::uint32_t tile = split_.tile_of(next_);
        const std::uint32_t first = next_ - tile * split_.steps();
        const std::uint32_t steps = min(split_.steps() - first, end_ - next_);
        next_ += steps;
        return {.item = WorkItem(tile), .first_step = first, .steps = steps};
    }

    /// Returns the clusters that share a tile.
    __device__ static Sharers sharers(const StreamKSplit& split, std::uint32_t tile)
    {
        const std::uint32_t first = tile * split.steps();
        return {.first = split.owner_of(first), .last = split.owner_of(first + split.steps() - 1)};
    }

private:
    const StreamKSplit& split_;
    std::uint32_t next_;
    std::uint32_t end_;
};

/// An answer of cluster launch control, in shared memory.
struct alignas(16) ClcAnswer {
    /// Opaque: the hardware writes it.
    std::uint64_t bits[2];
};

namespace detail {

inline constexpr std::uint32_t clc_answer_bytes = sizeof(ClcAnswer);

/// Requests a cluster. The answer is written to `answer` in this CTA, and its 16 bytes are counted at `barrier`.
__device__ __forceinline__ void clc_try_cancel(ClcAnswer& answer, const std::uint64_t* barrier)
{
    asm volatile(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(
            static_cast<std::uint32_t>(__cvta_generic_to_shared(&answer))),
        "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(barrier)))
        : "memory");
}

/// Does the same, with the answer in every CTA of the cluster.
__device__ __forceinline__ void clc_try_cancel_for_cluster(ClcAnswer& answer, const std::uint64_t* barrier)
{
    asm volatile(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
        "[%0], [%1];" ::"r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(&answer))),
        "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(barrier)))
        : "memory");
}

/// Returns true if a cluster was taken over, and gives its first CTA.
__device__ __forceinline__ bool clc_read(const ClcAnswer& answer, std::uint32_t& first_cta)
{
    std::uint32_t taken = 0;
    asm volatile(
        "{\n\t"
        ".reg .b64 low, high;\n\t"
        ".reg .b128 answer;\n\t"
        ".reg .pred taken;\n\t"
        "ld.shared.v2.b64 {low, high}, [%2];\n\t"
        "mov.b128 answer, {low, high};\n\t"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 taken, answer;\n\t"
        "selp.b32 %0, 1, 0, taken;\n\t"
        "mov.b32 %1, 0;\n\t"
        "@taken clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, answer;\n\t"
        "}"
        : "=r"(taken), "=r"(first_cta)
        : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(&answer)))
        : "memory");
    return taken != 0;
}

/// Arrives at the barrier with this offset in a CTA of the cluster, and announces bytes there. Orders no memory access, because
/// the calling thread has written nothing for those who wait; a release would be a fence of the whole GPU.
__device__ __forceinline__ void arrive_and_expect_at(const std::uint64_t* barrier, std::uint32_t rank,
                                                     std::uint32_t bytes)
{
    asm volatile(
        "{\n\t"
        ".reg .b32 remote;\n\t"
        "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
        "mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [remote], %2;\n\t"
        "}" ::"r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(barrier))),
        "r"(rank), "r"(bytes)
        : "memory");
}

}  // namespace detail

/// The shared memory of a ClcWorkQueue, at the same offset in every CTA of the cluster.
/// @tparam Slots  the number of answers in flight
template <std::uint32_t Slots>
struct ClcStorage {
    /// The barriers of the answers.
    using Ring = RingBarriers<WorkAnswered, FreedByThreads, Slots>;

    ClcAnswer answers[Slots];  ///< one for each slot
    Ring ring;                 ///< `full`: the answer is written; `empty`: all readers of the cluster have read it

    /// Initializes the barriers. Called in `publish_barriers` of each CTA.
    /// @param readers  number of warps that call next_of_warp(), of all CTAs of the cluster
    __device__ void initialize(const BarrierInitializer& by, std::uint32_t readers)
    {
        ring.initialize(by, {.producers = 1, .consumers = readers});
    }
};

/// The token that barriers must be published with which a cluster of this size uses.
template <std::uint32_t ClusterSize>
using PublishedTo = std::conditional_t<ClusterSize == 1, BarriersPublished, BarriersPublishedToCluster>;

/// The requesting side of a ClcWorkQueue: one warp of the cluster's first CTA.
/// @tparam ClusterSize  CTAs of the cluster
/// @tparam Slots        slots of the storage
template <std::uint32_t ClusterSize, std::uint32_t Slots>
class ClcRequester {
public:
    /// For the one warp that requests, after the barriers are published.
    __device__ ClcRequester(ClcStorage<Slots>& storage, PublishedTo<ClusterSize> published)
        : storage_(storage), producer_(storage.ring, published)
    {}

    /// Requests one more work tile, as soon as a slot is free. Called by the whole, converged warp: all of it waits for
    /// the slot, and one thread requests.
    __device__ void request()
    {
        auto slot = producer_.acquire();
        if (elect_one()) {
            const std::uint64_t* const full = detail::SlotBarriers::full(slot).word();
            if constexpr (ClusterSize == 1) {
                slot.announce(detail::clc_answer_bytes);
                detail::clc_try_cancel(storage_.answers[slot.index()], full);
            } else {
                for (std::uint32_t rank = 0; rank < ClusterSize; ++rank) {
                    detail::arrive_and_expect_at(full, rank, detail::clc_answer_bytes);
                }
                detail::clc_try_cancel_for_cluster(storage_.answers[slot.index()], full);
            }
        }
        detail::SlotBarriers::spend(slot);
    }

private:
    ClcStorage<Slots>& storage_;
    RingProducer<typename ClcStorage<Slots>::Ring> producer_;
};

/// The reading side of a ClcWorkQueue. Each warp that needs the work tiles has one, in every CTA of the cluster, and
/// reads every answer.
/// @tparam ClusterSize  CTAs of the cluster
/// @tparam Slots        slots of the storage
template <std::uint32_t ClusterSize, std::uint32_t Slots>
class ClcWorkQueue {
public:
    /// Reads the answers in `storage`.
    /// @param storage    the shared memory of the answers
    /// @param published  proof that its barriers are published
    __device__ ClcWorkQueue(ClcStorage<Slots>& storage, PublishedTo<ClusterSize> published)
        : storage_(storage), consumer_(storage.ring, published)
    {}

    /// Returns the cluster's own work tile.
    __device__ WorkItem first() const { return WorkItem(cuda::ptx::get_sreg_clusterid_x()); }

    /// Returns the next work tile. None ends the work of this cluster; work tiles that are left then run as clusters of
    /// their own. Called by the whole, converged warp; waits for the answer.
    __device__ WorkItem next_of_warp()
    {
        auto slot = consumer_.wait();
        WorkItem item = read(slot.index());
        if constexpr (ClusterSize == 1) {
            std::move(slot).release_of_warp();
        } else {
            __syncwarp();
            if (threadIdx.x % 32 == 0) {
                detail::arrive_in(0, detail::SlotBarriers::empty(slot).word());  // the first CTA requests
            }
            detail::SlotBarriers::spend(slot);
        }
        return item;
    }

private:
    __device__ WorkItem read(std::uint32_t slot)
    {
        std::uint32_t first_cta = 0;
        const bool taken = detail::clc_read(storage_.answers[slot], first_cta);
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);  // the next answer is written through the async proxy
        return taken ? WorkItem(first_cta / ClusterSize) : WorkItem();
    }

    ClcStorage<Slots>& storage_;
    RingConsumer<typename ClcStorage<Slots>::Ring> consumer_;
};

}  // namespace tessera
