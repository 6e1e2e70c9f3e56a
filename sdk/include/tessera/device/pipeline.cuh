#pragma once

/// @file
/// @ingroup device_barriers
/// @brief Rings of slots between producers and consumers, with their obligations in the types: see `RingBarriers`.

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tessera/device/barrier.cuh"
#include "tessera/device/obligation.cuh"

namespace tessera {

/// The numbers of arrivals that complete the barriers of a ring's slots.
struct RingArrivals {
    std::uint32_t producers;  ///< arrivals that fill a slot, the one that announces bytes included
    std::uint32_t consumers;  ///< arrivals that free a slot
};

/// The barriers of a ring, in shared memory.
///
/// @code{.cpp}
/// __shared__ RingBarriers<FilledByTma, FreedByThreads, 4> stages;
/// if (threadIdx.x == 0) {
///     stages.initialize({.producers = 1, .consumers = 128});
/// }
/// const BarriersPublished ready = publish_barriers();  // all threads of the CTA
///
/// if (warp == 4) {  // the producer: a whole warp
///     RingProducer producer(stages, ready);
///     for (unsigned step = 0; step < steps; ++step) {
///         auto slot = producer.acquire();
///         if (elect_one()) {
///             slot.full().arrive_and_expect(Map::box_bytes);
///             tma_load(a_map, a[slot.index()], slot, {64 * step, row});
///         }
///         std::move(slot).publish();
///     }
///     std::move(producer).drain();
/// } else {  // the consumers: 128 threads
///     RingConsumer consumer(stages, ready);
///     for (unsigned step = 0; step < steps; ++step) {
///         auto slot = consumer.wait();
///         compute(a[slot.index()]);
///         std::move(slot).release();
///     }
/// }
/// @endcode
///
/// A slot is a token. The producer's can only be filled and published, once; the consumer's can only be read and
/// released, once. A token that is dropped stops the kernel with a message; the check costs nothing where the compiler
/// can prove that none is dropped. Only the rings keep phases.
///
/// Tokens, producers and consumers belong to the thread that made them; the CTA or cluster shares the barriers.
///
/// @tparam FullKind   who completes a slot's full barrier
/// @tparam EmptyKind  who completes a slot's empty barrier
/// @tparam Slots      number of slots
template <class FullKind, class EmptyKind, std::uint32_t Slots>
struct RingBarriers {
    static_assert(Slots >= 1, "tessera: a ring has at least one slot");
    /// The kind of the barrier that is completed when a slot is filled.
    using Full = FullKind;
    /// The kind of the barrier that is completed when a slot may be filled again.
    using Empty = EmptyKind;
    /// The number of slots.
    static constexpr std::uint32_t slots = Slots;

    BarrierWord full[Slots];   ///< one for each slot: the slot is filled
    BarrierWord empty[Slots];  ///< one for each slot: the slot is free

    /// Initializes all barriers. Called by one thread, before the barriers are published.
    __device__ void initialize(RingArrivals arrivals)
    {
        for (std::uint32_t slot = 0; slot < Slots; ++slot) {
            Barrier<FullKind, Uninitialized>(full[slot]).initialize(arrivals.producers);
            Barrier<EmptyKind, Uninitialized>(empty[slot]).initialize(arrivals.consumers);
        }
    }
    /// Refuses to compile: bare numbers are easily confused.
    template <class Producers, class Consumers>
    __device__ void initialize(Producers, Consumers)
    {
        static_assert(!std::is_same_v<Producers, Producers>,
                      "tessera: name the arrivals of a ring: initialize({.producers = 1, .consumers = 128})");
    }
};

namespace detail {

/// A slot and the parity of the phase that its next completion ends. Each side of a ring counts on its own.
template <std::uint32_t Slots>
class RingPosition {
public:
    __device__ std::uint32_t index() const { return index_; }
    /// A consumer waits for this parity.
    __device__ PhaseParity full() const { return static_cast<PhaseParity>(parity_); }
    /// A producer waits for this parity: the completion before. In the first round there was none, and a wait for the
    /// odd parity of a fresh barrier passes.
    __device__ PhaseParity empty() const { return static_cast<PhaseParity>(parity_ ^ 1U); }

    __device__ void advance()
    {
        if (++index_ == Slots) {
            index_ = 0;
            parity_ ^= 1U;
        }
    }
    /// Skips `count` slots that others handle.
    __device__ void skip(std::uint32_t count)
    {
        const std::uint32_t next = index_ + count;
        parity_ ^= (next / Slots) & 1U;
        index_ = next % Slots;
    }

private:
    std::uint32_t index_ = 0;
    std::uint32_t parity_ = 0;
};

/// The base of both tokens: they must be spent.
using SlotObligation = Obligation<slot_was_dropped_without_publish_or_release>;

}  // namespace detail

template <class Ring>
class RingProducer;
template <class Ring>
class RingConsumer;

/// A slot to fill: the consumers have finished with its contents. It must be published, once.
template <class Ring>
class FillSlot : public detail::SlotObligation {
public:
    /// Returns the number of the slot in the ring.
    __device__ std::uint32_t index() const { return index_; }
    /// Returns the barrier that is completed when the slot is filled: TMA loads signal it.
    __device__ Barrier<typename Ring::Full, Ready> full() const { return {ring_->full[index_], published_}; }

    /// Ends the filling: all loads into the slot have been announced and issued. Consumers get the slot when the bytes
    /// have landed.
    __device__ void publish() &&
    {
        static_assert(!std::is_same_v<typename Ring::Full, FilledByThreads>,
                      "tessera: publish a slot that threads filled with publish_written()");
        fulfil();
    }

    /// Ends the filling by ordinary stores: all threads of the calling warp have written their parts of the slot, for
    /// TMA or the tensor core to read. Makes the stores visible to the asynchronous proxy and arrives once for the
    /// warp. Called by the whole warp.
    __device__ void publish_written() &&
    {
        if (written()) {
            full().arrive();
        }
        fulfil();
    }
    /// Does the same for a slot that a peer's barrier guards: arrives there. As `Barrier::arrive_at` says, it is for
    /// reads of the asynchronous proxy.
    __device__ void publish_written_to(CtaRank peer) &&
    {
        if (written()) {
            full().arrive_at(peer);
        }
        fulfil();
    }

private:
    friend class RingProducer<Ring>;
    __device__ FillSlot(Ring* ring, std::uint32_t index, BarriersPublished published)
        : ring_(ring), index_(index), published_(published)
    {}

    /// Returns true in the thread that arrives.
    __device__ static bool written()
    {
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
        __syncwarp();
        return threadIdx.x % 32 == 0;
    }

    Ring* ring_;
    std::uint32_t index_;
    BarriersPublished published_;
};

/// A filled slot to read. It must be released, once.
template <class Ring>
class ReadSlot : public detail::SlotObligation {
public:
    /// Returns the number of the slot in the ring.
    __device__ std::uint32_t index() const { return index_; }
    /// Returns the barrier that is completed when the slot is free: tensor core instructions commit to it.
    __device__ Barrier<typename Ring::Empty, Ready> empty() const { return {ring_->empty[index_], published_}; }

    /// Ends the calling thread's reading: arrives once in this CTA.
    __device__ void release() &&
    {
        empty().arrive();
        fulfil();
    }
    /// Ends the calling thread's reading: arrives once in a peer CTA, which fills this CTA's slot, too.
    __device__ void release_to(CtaRank peer) &&
    {
        empty().arrive_at(peer);
        fulfil();
    }
    /// Ends the reading without an arrival: another thread, or the tensor core, arrives for the calling thread.
    __device__ void release_by_other() && { fulfil(); }

private:
    friend class RingConsumer<Ring>;
    __device__ ReadSlot(Ring* ring, std::uint32_t index, BarriersPublished published)
        : ring_(ring), index_(index), published_(published)
    {}

    Ring* ring_;
    std::uint32_t index_;
    BarriersPublished published_;
};

/// Consecutive filled slots to read as one. They must be released, once.
template <class Ring>
class ReadSlots : public detail::SlotObligation {
public:
    /// Returns how many slots there are.
    __device__ std::uint32_t count() const { return count_; }
    /// Returns the number in the ring of slot `i` of these.
    __device__ std::uint32_t index(std::uint32_t i) const
    {
        const std::uint32_t index = first_ + i;
        return index < Ring::slots ? index : index - Ring::slots;
    }

    /// Moves all slots to the token that is returned. None are left in this one, which must be released nevertheless.
    __device__ ReadSlots take_all()
    {
        const std::uint32_t first = first_;
        const std::uint32_t count = count_;
        first_ = count_ = 0;
        return {ring_, first, count, published_};
    }

    /// Ends the calling thread's reading: arrives once for each slot in this CTA.
    __device__ void release() &&
    {
        for (std::uint32_t i = 0; i < count_; ++i) {
            empty(i).arrive();
        }
        fulfil();
    }
    /// Ends the calling thread's reading: arrives once for each slot in a peer CTA, which fills this CTA's slots, too.
    __device__ void release_to(CtaRank peer) &&
    {
        for (std::uint32_t i = 0; i < count_; ++i) {
            empty(i).arrive_at(peer);
        }
        fulfil();
    }
    /// Ends the reading without an arrival: another thread arrives for the calling thread.
    __device__ void release_by_other() && { fulfil(); }

private:
    friend class RingConsumer<Ring>;
    __device__ ReadSlots(Ring* ring, std::uint32_t first, std::uint32_t count, BarriersPublished published)
        : ring_(ring), first_(first), count_(count), published_(published)
    {}

    __device__ Barrier<typename Ring::Empty, Ready> empty(std::uint32_t i) const
    {
        return {ring_->empty[index(i)], published_};
    }

    Ring* ring_;
    std::uint32_t first_;
    std::uint32_t count_;
    BarriersPublished published_;
};

/// The filling side of a ring. Each thread of a warp that fills has one.
/// @tparam Ring  a RingBarriers
template <class Ring>
class RingProducer {
public:
    /// Begins at the first slot of `ring`, which is in shared memory.
    __device__ RingProducer(Ring& ring, BarriersPublished published) : ring_(&ring), published_(published) {}

    /// Waits until the next slot is free, and returns it. Called by the whole warp, even if one of its threads fills
    /// the slot: see `Barrier::wait`.
    [[nodiscard("tessera: a slot that is acquired must be published")]] __device__ FillSlot<Ring> acquire()
    {
        const std::uint32_t index = position_.index();
        Barrier<typename Ring::Empty, Ready>(ring_->empty[index], published_).wait(position_.empty());
        position_.advance();
        return {ring_, index, published_};
    }

    /// Waits until the next slot is free, announces the bytes that TMA will write into it in this CTA (whoever issues
    /// the loads), and returns it.
    ///
    /// Called by one thread if the others of its warp have exited (`exit_thread`). Otherwise the whole warp calls
    /// `acquire()`, and one thread announces.
    /// @param bytes  the bytes that complete the slot
    [[nodiscard("tessera: a slot that is acquired must be published")]] __device__ FillSlot<Ring> acquire(
        std::uint32_t bytes)
    {
        FillSlot<Ring> slot = acquire();
        slot.full().arrive_and_expect(bytes);
        return slot;
    }

    /// Waits until the consumers have freed every slot, so that no thread arrives at the ring's barriers any more.
    /// Called by the threads that called `acquire`, before they exit.
    __device__ void drain() &&
    {
        for (std::uint32_t slot = 0; slot < Ring::slots; ++slot) {
            Barrier<typename Ring::Empty, Ready>(ring_->empty[position_.index()], published_).wait(position_.empty());
            position_.advance();
        }
    }

private:
    Ring* ring_;
    BarriersPublished published_;
    detail::RingPosition<Ring::slots> position_;
};

/// The reading side of a ring. Each thread of a warp that reads has one.
/// @tparam Ring  a RingBarriers
template <class Ring>
class RingConsumer {
public:
    /// Begins at the first slot of `ring`, which is in shared memory.
    __device__ RingConsumer(Ring& ring, BarriersPublished published) : ring_(&ring), published_(published) {}

    /// Waits until the next slot is filled, and returns it. Called by the whole warp: see `Barrier::wait`.
    [[nodiscard("tessera: a slot that was waited for must be released")]] __device__ ReadSlot<Ring> wait()
    {
        const std::uint32_t index = position_.index();
        Barrier<typename Ring::Full, Ready>(ring_->full[index], published_).wait(position_.full());
        position_.advance();
        return {ring_, index, published_};
    }

    /// Waits until the next `count` slots are filled, and returns them as one. Called by the whole warp.
    /// @param count  0 to the number of slots
    [[nodiscard("tessera: slots that were waited for must be released")]] __device__ ReadSlots<Ring> wait_for(
        std::uint32_t count)
    {
        const std::uint32_t first = position_.index();
        for (std::uint32_t i = 0; i < count; ++i) {
            Barrier<typename Ring::Full, Ready>(ring_->full[position_.index()], published_).wait(position_.full());
            position_.advance();
        }
        return {ring_, first, count, published_};
    }

    /// Waits until the next `count` slots are filled, and leaves them for a later call. Called by the whole warp.
    __device__ void await_next(std::uint32_t count) const
    {
        auto position = position_;
        for (std::uint32_t i = 0; i < count; ++i, position.advance()) {
            Barrier<typename Ring::Full, Ready>(ring_->full[position.index()], published_).wait(position.full());
        }
    }

    /// Returns the slot that `wait` returns next.
    __device__ std::uint32_t next_index() const { return position_.index(); }
    /// Leaves `count` slots to other consumers of the same ring. Before the caller waits for such a slot's next filling, it
    /// must know from them that this one is complete: the barrier's parity cannot tell one filling from the next but one.
    __device__ void skip(std::uint32_t count) { position_.skip(count); }

private:
    Ring* ring_;
    BarriersPublished published_;
    detail::RingPosition<Ring::slots> position_;
};

}  // namespace tessera
