#pragma once

/// @file
/// @ingroup device_tensor_memory
/// @brief Reading accumulators from tensor memory: possible only from the wait for one until its release.
///
/// @code{.cpp}
/// // sums: RingBarriers<AccumulatorFull, AccumulatorEmpty, 1>, of which each warp that reads is a consumer
/// auto accumulators = read_accumulators<128>(sums, published, tensor_memory);
/// for (WorkItem work = queue.first(); work; work = queue.next_of_warp()) {
///     auto accumulator = accumulators.wait();  // a whole warp
///     for (unsigned column = 0; column < 128; column += 32) {
///         const auto part = accumulator.load_rows<32>(warp, column).wait();
///         store(part, column);                 // of the thread's row
///     }
///     std::move(accumulator).release();        // the tensor core may overwrite it
/// }
/// @endcode
///
/// The other side is `publish_after_mma` in mma.cuh. Source: PTX ISA 9.0, "tcgen05.ld", "tcgen05.st", "tcgen05.wait",
/// "tcgen05.fence".

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tessera/device/obligation.cuh"
#include "tessera/device/pipeline.cuh"
#include "tessera/device/tmem.cuh"

namespace tessera {

template <class Ring, class TensorMemory, std::uint32_t Columns>
class AccumulatorReader;

/// An accumulator that is complete, and not yet released. It must be released, once: one that is dropped stops the kernel with
/// a message.
/// @tparam Ring          a RingBarriers of AccumulatorFull and AccumulatorEmpty
/// @tparam TensorMemory  a Tmem that is Allocated
/// @tparam Columns       number of columns
template <class Ring, class TensorMemory, std::uint32_t Columns>
class [[nodiscard("tessera: an accumulator that was waited for must be released")]] ReadableAccumulator
    : detail::Obligation<detail::accumulator_was_not_released> {
public:
    /// Starts to load columns [first, first + Count) of the calling warp's 32 rows: lane t gets row 32 * (warp % 4) + t.
    /// Called by the whole, converged warp.
    /// @tparam Count  16, 32 or 64
    /// @param warp    the calling warp's number in its CTA
    /// @param first   the first column
    template <std::uint32_t Count>
    __device__ __forceinline__ PendingTile<Count> load_rows(std::uint32_t warp, std::uint32_t first) const
    {
        static_assert((Count == 16 || Count == 32 || Count == 64) && Count <= Columns,
                      "tessera: load_rows takes 16, 32 or 64 columns at a time, and no more than there are");
        return PendingTile<Count>(address_of(warp, first));
    }

    /// Starts to replace columns [first, first + 16) of the calling warp's 32 rows by what the lanes give, as `load_rows`
    /// returns it. Called by the whole, converged warp, which reads them after `tcgen05_wait_stores`.
    /// @param warp    the calling warp's number in its CTA
    /// @param first   the first column
    /// @param row     the columns of the thread's row
    __device__ __forceinline__ void store_rows(std::uint32_t warp, std::uint32_t first,
                                               const RegisterTile<float, 16>& row) const
    {
        detail::tcgen05_store_16_columns(address_of(warp, first), row.values);
    }

    /// Lets the tensor core overwrite the accumulator: waits for all loads of the calling thread, and arrives once for the
    /// warp, in the first CTA of a pair. Called by the whole, converged warp.
    __device__ __forceinline__ void release() &&
    {
        detail::tcgen05_wait_loads();
        tcgen05_fence_before_sync();
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            if constexpr (Ring::group == CtaGroup::pair) {
                detail::arrive_in(CtaRank::self().value() & ~1U, empty_.word());
            } else {
                empty_.arrive();
            }
        }
        this->fulfil();
    }

private:
    friend class AccumulatorReader<Ring, TensorMemory, Columns>;
    __device__ ReadableAccumulator(std::uint32_t address, Barrier<AccumulatorEmpty> empty)
        : address_(address), empty_(empty)
    {}

    __device__ __forceinline__ std::uint32_t address_of(std::uint32_t warp, std::uint32_t column) const
    {
        constexpr std::uint32_t lane_shift = 16;
        return address_ + ((warp % 4 * 32) << lane_shift) + column;
    }

    std::uint32_t address_;
    Barrier<AccumulatorEmpty> empty_;
};

/// The reading side of a ring of accumulators. Each warp that reads has one. `read_accumulators` makes it.
/// @tparam Ring          a RingBarriers of AccumulatorFull and AccumulatorEmpty
/// @tparam TensorMemory  a Tmem that is Allocated
/// @tparam Columns       columns of an accumulator: slot i has the i-th part of tensor memory
template <class Ring, class TensorMemory, std::uint32_t Columns>
class AccumulatorReader {
public:
    /// Begins at the first slot of `ring`, which is in shared memory.
    __device__ AccumulatorReader(Ring& ring, BarriersPublished published, const TensorMemory& tensor_memory)
        : consumer_(ring, published), tensor_memory_(tensor_memory)
    {}

    /// Waits until the next accumulator is complete, and returns it. Called by the whole warp: see `Barrier::wait`.
    __device__ ReadableAccumulator<Ring, TensorMemory, Columns> wait()
    {
        auto slot = consumer_.wait();
        tcgen05_fence_after_sync();
        const Barrier<AccumulatorEmpty> empty = detail::SlotBarriers::empty(slot);
        const std::uint32_t address = tensor_memory_.template accumulator<Columns>(slot.index()).address();
        detail::SlotBarriers::spend(slot);
        return {address, empty};
    }

    /// Leaves the next `count` accumulators to other warps of the same lanes, which are the slots' only consumers then.
    __device__ void skip(std::uint32_t count) { consumer_.skip(count); }

private:
    RingConsumer<Ring> consumer_;
    const TensorMemory& tensor_memory_;
};

/// Returns the reading side of a ring of accumulators.
/// @tparam Columns       columns of an accumulator
/// @param ring           one slot for each accumulator; for a pair of CTAs a ring of the pair
/// @param published      for a pair, the token of `publish_barriers_to_cluster`
/// @param tensor_memory  allocated, and not released before the last accumulator
template <std::uint32_t Columns, class Ring, class Published, std::uint32_t Total, CtaGroup Group>
__device__ AccumulatorReader<Ring, Tmem<Allocated, Total, Group>, Columns> read_accumulators(
    Ring& ring, Published published, const Tmem<Allocated, Total, Group>& tensor_memory)
{
    static_assert(
        std::is_same_v<typename Ring::Full, AccumulatorFull> && std::is_same_v<typename Ring::Empty, AccumulatorEmpty>,
        "tessera: accumulators are read from a ring of AccumulatorFull and AccumulatorEmpty");
    static_assert(
        Ring::group == Group,
        "tessera: the ring of a pair's accumulators is RingBarriers<AccumulatorFull, AccumulatorEmpty, Slots, "
        "CtaGroup::pair>: the pair's first CTA issues the products");
    static_assert(Ring::slots * Columns <= Total, "tessera: the ring has more accumulators than tensor memory");
    static_assert(
        Group == CtaGroup::one || std::is_same_v<Published, BarriersPublishedToCluster>,
        "tessera: a pair's accumulators are released at a barrier of the peer, which publish_barriers_to_cluster() "
        "publishes");
    return {ring, published, tensor_memory};
}

}  // namespace tessera
