#pragma once

/// A tile of D that several clusters share (stream-K): where their parts are, and who adds up what of them.
///
/// A CTA that has nothing else to do stays until all parts are there, and those that stay add up a slice of the tile
/// each. It stays only if the CTAs that it would wait for are running: so they come to their end, whatever else the
/// device does. If nobody stays, whoever comes last adds up the whole tile. The parts are added up in an order that
/// depends on their number only, not on who adds them up: results repeat bit by bit.

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
    // So often does a CTA look whether all sharers have started, some 700 cycles each: they are launched one after the
    // other, and if parts are short, the first is done before the last has started.
    static constexpr int looks = 8;

    /// Counters of a tile.
    enum Counter : std::uint32_t {
        started,  // CTAs that have announced that they will share it
        arrived,  // low half: CTAs whose part is written; high half: those of them that stay
        seen      // CTAs that have stayed and know that all have arrived
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

    /// Says of all tiles that the calling CTA will share that it has started. Executed by one thread of it, early.
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

    /// How many share the tile.
    __device__ std::uint32_t count() const { return count_; }

    /// (tile_m, tile_n) in the workspace: what this CTA's fellow in the sharer has added up. @param sharer  from 0
    __device__ float* part(std::uint32_t sharer) const
    {
        // Of a cluster's two slots, one is for the tile that begins in it, the other for that in which it begins.
        const std::uint32_t slot = sharer == 0 ? 0 : 2 * sharer + 1;
        return workspace_.partials + std::uint64_t{first_ + slot * size_} * tile_elements;
    }
    /// The part of the calling thread's cluster.
    __device__ float* own_part() const { return part(own_); }

    /// CTAs that have started.
    __device__ std::uint32_t have_started() const { return read(counters() + started); }

    /// Says that the calling CTA's part is written, and returns what it is to add up; then all parts are visible to the
    /// calling warp's first thread. Executed by a warp, which has been synchronized with those that wrote. All of it
    /// waits, for a thread that does so alone is not safe from its warp: see `exit_thread`.
    /// @param may_stay  nobody waits for what this CTA does next
    /// @param begun     what `have_started` said before the part was written: memory's answer takes as long
    __device__ HopperSlice arrive(bool may_stay, std::uint32_t begun) const
    {
        std::uint32_t* const counters = this->counters();
        const bool stays = may_stay && (of_first_lane(begun) == count_ || have_all_started());
        const std::uint32_t own = 1 + (stays ? one_stays : 0);
        std::uint32_t before = 0;
        if (threadIdx.x % 32 == 0) {
            before = add_in_order(counters + arrived, own);
            if (((before + own) & arrived_mask) == count_) {  // nobody looks at it any more
                // Not a zero: the thread that announces is another one, and may be late.
                atomicSub(counters + started, count_);
            }
        }
        before = of_first_lane(before);
        std::uint32_t now = before + own;
        if (!stays) {
            const bool alone = now == count_;  // the last, and nobody has stayed
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

    /// Of a CTA that stayed with others: resets the counters for the next launch when the last of those that stayed
    /// knows that all parts are there. Begun and ended by one thread: what lies between hides how long memory takes to
    /// answer.
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
    /// In the first sharer's slot.
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
    /// What was written before is visible to whoever reads the sum in order, and what others wrote before to this one.
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
    std::uint32_t size_;   // of a cluster
    std::uint32_t count_;  // of sharers
    std::uint32_t own_;    // the calling thread's cluster among them
    std::uint32_t first_;  // the first one's part and counters, among those of all CTAs
};

}  // namespace tessera::kernels
