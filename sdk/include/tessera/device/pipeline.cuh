#pragma once

/// Rings of slots between producers and consumers, with the obligations in the types.
///
///     RingBarriers<FilledByTma, FreedByThreads, 4> stages;              // in shared memory
///     stages.initialize({.producers = 1, .consumers = 128});            // one thread
///
///     // producer, a whole warp                                // consumer
///     auto slot = producer.acquire();                          auto slot = consumer.wait();
///     if (elect_one()) {                                       multiply(tile[slot.index()]);
///         slot.full().arrive_and_expect(bytes);                std::move(slot).release();
///         tma_load(map, tile[slot.index()], slot, {k, m});
///     }
///     std::move(slot).publish();
///
/// A slot is a token: the producer's can only be filled and published, once; the consumer's can only be read and
/// released, once. A token that is dropped stops the kernel with a sentence, where the compiler cannot prove that none
/// is; it costs nothing where it can. Phases are kept here and nowhere else.
///
/// Tokens, producers and consumers belong to the thread that made them; the barriers are shared by the CTA or cluster.

#include <cassert>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "tessera/device/barrier.cuh"

namespace tessera {

/// How many arrivals complete the barriers of a ring's slots.
struct RingArrivals {
    std::uint32_t producers;  ///< that fill a slot, the one that announces bytes included
    std::uint32_t consumers;  ///< that free a slot
};

/// The barriers of a ring, in shared memory.
template <class FullKind, class EmptyKind, std::uint32_t Slots>
struct RingBarriers {
    static_assert(Slots >= 1, "tessera: a ring has at least one slot");
    /// Completed when a slot is filled.
    using Full = FullKind;
    /// Completed when a slot may be filled again.
    using Empty = EmptyKind;
    /// How many.
    static constexpr std::uint32_t slots = Slots;

    BarrierWord full[Slots];   ///< one for each slot
    BarrierWord empty[Slots];  ///< likewise

    /// Executed by one thread, before the barriers are published.
    __device__ void initialize(RingArrivals arrivals)
    {
        for (std::uint32_t slot = 0; slot < Slots; ++slot) {
            Barrier<FullKind, Uninitialized>(full[slot]).initialize(arrivals.producers);
            Barrier<EmptyKind, Uninitialized>(empty[slot]).initialize(arrivals.consumers);
        }
    }
    /// Does not compile: bare numbers are easily exchanged.
    template <class Producers, class Consumers>
    __device__ void initialize(Producers, Consumers)
    {
        static_assert(!std::is_same_v<Producers, Producers>,
                      "tessera: name the arrivals of a ring: initialize({.producers = 1, .consumers = 128})");
    }
};

namespace detail {

/// A slot and the parity of the phase that its next completion ends. Both sides of a ring count on their own.
template <std::uint32_t Slots>
class RingPosition {
public:
    __device__ std::uint32_t index() const { return index_; }
    /// What a consumer waits for.
    __device__ PhaseParity full() const { return static_cast<PhaseParity>(parity_); }
    /// What a producer waits for: the completion before. In the first round there was none, and a wait for the odd
    /// parity of a fresh barrier passes.
    __device__ PhaseParity empty() const { return static_cast<PhaseParity>(parity_ ^ 1U); }

    __device__ void advance()
    {
        if (++index_ == Slots) {
            index_ = 0;
            parity_ ^= 1U;
        }
    }
    /// Goes on by `count` slots that others deal with.
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

/// Stops the kernel with a sentence. A function of its own for its name in traces and profiles, and to keep it out of
/// the way of the code that calls it; where no slot can be dropped, there is no call.
__device__ __noinline__ inline void slot_was_dropped_without_publish_or_release()
{
    __assert_fail(
        "tessera: a slot of a ring was dropped: publish() each slot from acquire(), release() each slot from wait()",
        "tessera/device/pipeline.cuh", __LINE__, "slot_was_dropped_without_publish_or_release");
    __trap();
}

/// What both tokens have in common: they must be spent.
class Obligation {
public:
    Obligation(const Obligation&) = delete;
    Obligation& operator=(const Obligation&) = delete;
    __device__ Obligation(Obligation&& other) noexcept : open_(other.open_) { other.open_ = false; }
    __device__ Obligation& operator=(Obligation&& other) noexcept
    {
        if (open_) {
            slot_was_dropped_without_publish_or_release();
        }
        open_ = other.open_;
        other.open_ = false;
        return *this;
    }
    __device__ ~Obligation()
    {
        if (open_) {
            slot_was_dropped_without_publish_or_release();
        }
    }

protected:
    __device__ Obligation() {}
    __device__ void fulfil() { open_ = false; }

private:
    bool open_ = true;
};

}  // namespace detail

template <class Ring>
class RingProducer;
template <class Ring>
class RingConsumer;

/// A slot to fill: the consumers are done with what it held.
template <class Ring>
class FillSlot : public detail::Obligation {
public:
    /// Which slot of the ring.
    __device__ std::uint32_t index() const { return index_; }
    /// Completed when the slot is filled: what TMA loads signal.
    __device__ Barrier<typename Ring::Full, Ready> full() const { return {ring_->full[index_], published_}; }

    /// The announced loads are issued: consumers get the slot when they have landed.
    __device__ void publish() &&
    {
        static_assert(!std::is_same_v<typename Ring::Full, FilledByThreads>,
                      "tessera: publish a slot that threads filled with publish_written()");
        fulfil();
    }

    /// The threads of the calling warp, all of them here, have written their parts of the slot with ordinary stores,
    /// for TMA or the tensor core to read: makes them visible to the asynchronous proxy and arrives, once for the warp.
    __device__ void publish_written() &&
    {
        if (written()) {
            full().arrive();
        }
        fulfil();
    }
    /// The same, but the slot of a peer is filled by what both write: arrives there. As `Barrier::arrive_at` says, it
    /// is for reads of the asynchronous proxy.
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

    /// True in the thread that arrives.
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

/// A slot to read.
template <class Ring>
class ReadSlot : public detail::Obligation {
public:
    /// Which slot of the ring.
    __device__ std::uint32_t index() const { return index_; }
    /// Completed when the slot is free: what tensor core instructions commit to.
    __device__ Barrier<typename Ring::Empty, Ready> empty() const { return {ring_->empty[index_], published_}; }

    /// The calling thread's part of reading is done: one arrival in this CTA.
    __device__ void release() &&
    {
        empty().arrive();
        fulfil();
    }
    /// The same in a peer CTA, which fills this CTA's slot too.
    __device__ void release_to(CtaRank peer) &&
    {
        empty().arrive_at(peer);
        fulfil();
    }
    /// Another thread arrives for the calling one, or the tensor core does.
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

/// The filling side of a ring, held by each thread of a warp that fills.
template <class Ring>
class RingProducer {
public:
    /// Begins at the first slot of `ring`, which is in shared memory.
    __device__ RingProducer(Ring& ring, BarriersPublished published) : ring_(&ring), published_(published) {}

    /// Waits for the next slot to be free. Executed by the whole warp, also where one of its threads fills the slot:
    /// see `Barrier::wait`.
    [[nodiscard("tessera: a slot that is acquired must be published")]] __device__ FillSlot<Ring> acquire()
    {
        const std::uint32_t index = position_.index();
        Barrier<typename Ring::Empty, Ready>(ring_->empty[index], published_).wait(position_.empty());
        position_.advance();
        return {ring_, index, published_};
    }

    /// The same, and announces the bytes that TMA will write into the slot in this CTA, whoever issues the loads.
    /// Executed by one thread when the others of its warp have exited (`exit_thread`). Where they have not, the whole
    /// warp calls `acquire()`, and one thread announces.
    [[nodiscard("tessera: a slot that is acquired must be published")]] __device__ FillSlot<Ring> acquire(
        std::uint32_t bytes)
    {
        FillSlot<Ring> slot = acquire();
        slot.full().arrive_and_expect(bytes);
        return slot;
    }

    /// Waits until the consumers have freed every slot: after that nobody arrives at the ring's barriers any more.
    /// Executed by whoever executed `acquire`.
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

/// The reading side of a ring, held by each thread of a warp that reads.
template <class Ring>
class RingConsumer {
public:
    /// Begins at the first slot of `ring`, which is in shared memory.
    __device__ RingConsumer(Ring& ring, BarriersPublished published) : ring_(&ring), published_(published) {}

    /// Waits for the next slot to be filled. Executed by the whole warp: see `Barrier::wait`.
    [[nodiscard("tessera: a slot that was waited for must be released")]] __device__ ReadSlot<Ring> wait()
    {
        const std::uint32_t index = position_.index();
        Barrier<typename Ring::Full, Ready>(ring_->full[index], published_).wait(position_.full());
        position_.advance();
        return {ring_, index, published_};
    }

    /// The slot that `wait` gives next.
    __device__ std::uint32_t next_index() const { return position_.index(); }
    /// Leaves `count` slots to other consumers of the same ring.
    __device__ void skip(std::uint32_t count) { position_.skip(count); }

private:
    Ring* ring_;
    BarriersPublished published_;
    detail::RingPosition<Ring::slots> position_;
};

}  // namespace tessera
