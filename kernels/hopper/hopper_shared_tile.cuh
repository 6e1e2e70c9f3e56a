#pragma once

/// A tile of D that several clusters share (stream-K): where their partial sums are, and who adds them.
///
/// A CTA without further work stays until all parts of the tile have arrived. The CTAs that stay divide the tile into
/// slices and sum up one each. A CTA stays only if all CTAs it waits for have started, so it cannot wait forever,
/// whatever else runs on the device. If none stays, the last to arrive sums up the whole tile. The order of the
/// additions depends on the number of parts only, not on who adds them: results are repeatable bit by bit.
///
/// The state is in the workspace: fp32 parts and counters in global memory.

#include <cstdint>

#include "hopper_arguments.hpp"
#include "hopper_kernels.hpp"
#include "hopper_shared.cuh"
#include "hopper_work.cuh"
#include "tessera/device/cluster.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

template <class Config>
class HopperSharedTile {
    static constexpr int tile_elements = Config::config.tile_m * Config::config.tile_n;
    static constexpr std::uint32_t arrived_mask = 0xFFFF;
    static constexpr std::uint32_t one_stays = 0x10000;
    // How often a CTA polls whether all sharers have started; a poll costs some 700 cycles. CTAs are launched one after
    // the other: with short parts, the first is done before the last has started.
    static constexpr int looks = 8;

    /// Counters per tile.
    enum Counter : std::uint32_t {
        started,  // CTAs that have announced that they share the tile
        arrived,  // low half: CTAs whose part is written; high half: how many of them stay
        seen      // CTAs that stayed and have seen all parts arrive
    };
    static_assert(seen + 1 == hopper_tile_counters);

public:
    __device__ HopperSharedTile(const HopperArguments& arguments, const HopperQueue& queue, std::uint32_t tile,
                                const ClusterGrid& cluster)
        : workspace_(arguments.workspace), size_(cluster.size())
    {
        const HopperRange sharers = queue.sharers(tile);
        count_ = sharers.last - sharers.first + 1;
        own_ = HopperQueue::cluster() - sharers.first;
        first_ = 2 * sharers.first * size_ + cluster.rank();
    }

    /// Announces for all tiles that the calling CTA will share that it has started. Executed by one thread, early.
    __device__ static void announce(const HopperArguments& arguments, const HopperQueue& queue,
                                    const ClusterGrid& cluster)
    {
        if (!arguments.work.stream_k) {
            return;
        }
        await_kernel_before();
        const HopperRange tiles = queue.outer_tiles();
#pragma unroll 1
        for (std::uint32_t tile = tiles.first;; tile = tiles.last) {
            const HopperSharedTile shared(arguments, queue, tile, cluster);
            if (shared.count_ > 1) {
                atomicAdd(shared.counters() + started, 1U);
            }
            if (tile == tiles.last) {
                return;
            }
        }
    }

    /// Number of sharers.
    __device__ std::uint32_t count() const { return count_; }

    /// A sharer's partial sums, (tile_m, tile_n), from the CTA of the calling CTA's rank. @param sharer  from 0
    __device__ float* part(std::uint32_t sharer) const
    {
        // A cluster has two slots: one for the tile that begins in it, the other for the tile in which it begins.
        const std::uint32_t slot = sharer == 0 ? 0 : 2 * sharer + 1;
        return workspace_.partials + std::uint64_t{first_ + slot * size_} * tile_elements;
    }
    /// The part of the calling thread's cluster.
    __device__ float* own_part() const { return part(own_); }

    /// Number of CTAs that have started.
    __device__ std::uint32_t have_started() const { return read(counters() + started); }

    /// Announces that the calling CTA's part is written, and returns the slice that it is to sum up. All parts are then
    /// visible to the calling warp's first thread. Executed by one warp, synchronized with the threads that wrote. The
    /// whole warp waits: a single thread must not wait while its warp goes on (see `exit_thread`).
    /// @param may_stay  nothing waits on what this CTA does next
    /// @param begun     what `have_started` returned before the part was written, which hides its latency
    __device__ HopperSlice arrive(bool may_stay, std::uint32_t begun) const
    {
        std::uint32_t* const counters = this->counters();
        const bool stays = may_stay && (of_first_lane(begun) == count_ || have_all_started());
        const std::uint32_t own = 1 + (stays ? one_stays : 0);
        std::uint32_t before = 0;
        if (threadIdx.x % 32 == 0) {
            before = add_in_order(counters + arrived, own);
            if (((before + own) & arrived_mask) == count_) {  // the last part: the counter is not used any more
                // Subtracted instead of zeroed: another thread announces, and may be late.
                atomicSub(counters + started, count_);
            }
        }
        before = of_first_lane(before);
        std::uint32_t now = before + own;
        if (!stays) {
            const bool alone = now == count_;  // the last one, and no other has stayed
            if (alone) {
                reset(counters + arrived);
            }
            return {.index = 0, .count = alone ? 1U : 0U};
        }
        while ((now & arrived_mask) != count_) {
            now = of_first_lane(read_in_order(counters + arrived));
        }
        const HopperSlice slice{.index = before / one_stays, .count = now / one_stays};
        if (slice.count == 1) {
            reset(counters + arrived);
        }
        return slice;
    }

    /// For a CTA that stayed with others: once the last of them has seen all parts, resets the counters for the next
    /// launch. One thread begins and ends it; the work in between hides the latency of memory.
    __device__ std::uint32_t begin_leaving(const HopperSlice& slice) const
    {
        return slice.count > 1 ? atomicAdd(counters() + seen, 1U) : 0;
    }
    __device__ void end_leaving(const HopperSlice& slice, std::uint32_t begun) const
    {
        if (slice.count > 1 && begun == slice.count - 1) {
            reset(counters() + arrived);
            reset(counters() + seen);
        }
    }

private:
    /// Counters are in the first sharer's slot.
    __device__ std::uint32_t* counters() const
    {
        return workspace_.arrivals + std::uint64_t{first_} * hopper_tile_counters;
    }
    __device__ bool have_all_started() const
    {
#pragma unroll 1
        for (int look = 0; look < looks; ++look) {
            if (of_first_lane(have_started()) == count_) {
                return true;
            }
        }
        return false;
    }
    /// Acquire and release: a thread that acquires the sum sees this thread's earlier writes, and this thread sees the
    /// writes of those that added before.
    __device__ static std::uint32_t add_in_order(std::uint32_t* counter, std::uint32_t addend)
    {
        return __nv_atomic_fetch_add(counter, addend, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_DEVICE);
    }
    __device__ static std::uint32_t read_in_order(std::uint32_t* counter)
    {
        return __nv_atomic_load_n(counter, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
    }
    __device__ static std::uint32_t read(const volatile std::uint32_t* counter) { return *counter; }
    __device__ static void reset(volatile std::uint32_t* counter)
    {
        if (threadIdx.x % 32 == 0) {
            *counter = 0;
        }
    }

    const HopperWorkspace& workspace_;
    std::uint32_t size_;   // CTAs per cluster
    std::uint32_t count_;  // number of sharers
    std::uint32_t own_;    // index of the calling thread's cluster among them
    std::uint32_t first_;  // index of the first sharer's part and counters among those of all CTAs
};

}  // namespace tessera::kernels
