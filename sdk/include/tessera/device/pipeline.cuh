#pragma once

/// @file
/// @ingroup device_barriers
/// @brief Rings of slots between producers and consumers, with their obligations in the types: see `RingBarriers`.

#include <cuda/ptx>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tessera/device/barrier.cuh"
#include "tessera/device/cta_group.hpp"
#include "tessera/device/obligation.cuh"
#include "tessera/device/warp.cuh"

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
/// const auto ready = publish_barriers([&](const BarrierInitializer& by) {  // all threads of the CTA
///     stages.initialize(by, {.producers = 1, .consumers = 128});
/// });
///
/// if (warp == 4) {  // the producer: a whole warp
///     RingProducer producer(stages, ready);
///     for (unsigned step = 0; step < steps; ++step) {
///         producer.fill([&](auto& slot) {  // one thread, when the slot is free
///             tma_load(a_map, a[slot.index()], slot, {64 * step, row});
///         });                              // announces the bytes of these loads
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
/// released, once. A token that is dropped stops the kernel with a message, and so does a slot that is filled with nothing;
/// the checks cost nothing where the compiler can prove that they pass. Only the rings keep phases, and only their slots use
/// the barriers.
///
/// Tokens, producers and consumers belong to the thread that made them; the CTA or cluster shares the barriers.
///
/// @tparam FullKind   who completes a slot's full barrier
/// @tparam EmptyKind  who completes a slot's empty barrier
/// @tparam Slots      number of slots
/// @tparam Group      pair: two CTAs fill a slot together, and the barriers of the pair's first CTA count for both
template <class FullKind, class EmptyKind, std::uint32_t Slots, CtaGroup Group = CtaGroup::one>
class RingBarriers {
    static_assert(Slots >= 1, "tessera: a ring has at least one slot");

public:
    /// The kind of the barrier that is completed when a slot is filled.
    using Full = FullKind;
    /// The kind of the barrier that is completed when a slot may be filled again.
    using Empty = EmptyKind;
    /// The number of slots.
    static constexpr std::uint32_t slots = Slots;
    /// Who fills a slot: a CTA or a pair.
    static constexpr CtaGroup group = Group;

    /// Initializes all barriers. Called in `publish_barriers`.
    __device__ void initialize(const BarrierInitializer& by, RingArrivals arrivals)
    {
        for (std::uint32_t slot = 0; slot < Slots; ++slot) {
            by.initialize(full_[slot], arrivals.producers);
            by.initialize(empty_[slot], arrivals.consumers);
        }
    }
    /// Initializes all barriers of a ring that nobody but TMA and the tensor core uses: one arrival fills a slot, and one
    /// frees it.
    __device__ void initialize(const BarrierInitializer& by)
    {
        static_assert(std::is_same_v<FullKind, FilledByTma> && std::is_same_v<EmptyKind, FreedByTensorCore>,
                      "tessera: say how many threads arrive: initialize(by, {.producers = 1, .consumers = 128})");
        initialize(by, {.producers = 1, .consumers = 1});
    }
    /// Refuses to compile: bare numbers are easily confused.
    template <class Producers, class Consumers>
    __device__ void initialize(const BarrierInitializer&, Producers, Consumers)
    {
        static_assert(!std::is_same_v<Producers, Producers>,
                      "tessera: name the arrivals of a ring: initialize(by, {.producers = 1, .consumers = 128})");
    }

private:
    template <class>
    friend class FillSlot;
    template <class>
    friend class ReadSlot;
    template <class>
    friend class ReadSlots;
    template <class>
    friend class RingProducer;
    template <class>
    friend class RingConsumer;

    BarrierWord<FullKind> full_[Slots];    // one for each slot: the slot is filled
    BarrierWord<EmptyKind> empty_[Slots];  // one for each slot: the slot is free
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
    /// Returns the position behind the next `count` slots, which are few.
    __device__ RingPosition behind(std::uint32_t count) const
    {
        auto position = *this;
        for (; count > 0; --count) {
            position.advance();
        }
        return position;
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

/// The base of the tokens: they must be spent.
using SlotObligation = Obligation<slot_was_dropped_without_publish_or_release>;

/// The barriers of a slot, for what completes them by an instruction of its own (mma.cuh, clc.cuh) or for a warp (accumulator.cuh).
struct SlotBarriers {
    template <class Slot>
    __device__ static auto full(const Slot& slot)
    {
        return slot.full();
    }
    template <class Slot>
    __device__ static auto empty(const Slot& slot)
    {
        return slot.empty();
    }
    /// Ends a slot for a thread for which another one arrives.
    template <class Slot>
    __device__ static void spend(Slot&& slot)
    {
        slot.fulfil();
    }
};

/// True in the CTA whose barriers count for its group.
template <CtaGroup Group>
__device__ __forceinline__ bool counts_for_group()
{
    return Group == CtaGroup::one || (CtaRank::self().value() & 1U) == 0;
}

}  // namespace detail

template <class Ring>
class RingProducer;
template <class Ring>
class RingConsumer;

/// A slot to fill: the consumers have finished with its contents. It must be published, once.
template <class Ring>
class FillSlot : public detail::SlotObligation {
    static constexpr bool filled_by_tma = std::is_same_v<typename Ring::Full, FilledByTma>;

public:
    /// Returns the number of the slot in the ring.
    __device__ std::uint32_t index() const { return index_; }
    /// Returns where the bytes of a load through an `AnyTensorMap` are counted. For a ring that is FilledByTma.
    __device__ ByteCounter<Ring::group> bytes() const
    {
        static_assert(filled_by_tma, "tessera: a TMA load fills a slot of a ring whose full barrier is FilledByTma");
        return ByteCounter<Ring::group>(full().word());
    }

    /// Announces bytes that TMA will write, where threads write the rest of the slot. Called by one thread.
    __device__ void announce(std::uint32_t bytes) const { full().arrive_and_expect(bytes); }
    /// Completes `bytes` of those that the same slot of a peer expects: see `Barrier::complete_bytes_at`.
    __device__ void complete_bytes_at(ReadyCta peer, std::uint32_t bytes) const
    {
        full().complete_bytes_at(peer, bytes);
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
    __device__ void publish_written_to(ReadyCta peer) &&
    {
        if (written()) {
            full().arrive_at(peer);
        }
        fulfil();
    }
    /// Refuses to compile: who fills the slot must say that it is full.
    template <class... Arguments>
    __device__ void publish(Arguments...) &&
    {
        static_assert(
            sizeof...(Arguments) > 99,
            "tessera: nothing is announced for this slot: fill() it, or acquire(bytes) it; threads publish what they "
            "wrote with publish_written(), and an accumulator is published with publish_after_mma()");
    }

protected:
    /// Names a slot that is free. Only a RingProducer makes slots.
    __device__ FillSlot(Ring* ring, std::uint32_t index, BarriersPublished published)
        : ring_(ring), index_(index), published_(published)
    {}

private:
    friend class RingProducer<Ring>;
    friend struct detail::SlotBarriers;

    __device__ Barrier<typename Ring::Full> full() const { return {ring_->full_[index_], published_}; }
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

/// A slot to fill whose bytes are announced. It must be published, once.
template <class Ring>
class AnnouncedSlot : public FillSlot<Ring> {
public:
    /// Ends the filling: all loads into the slot have been issued. Consumers get the slot when the bytes have landed.
    __device__ void publish() && { this->fulfil(); }

private:
    friend class RingProducer<Ring>;
    using FillSlot<Ring>::FillSlot;
};

/// A slot that one thread fills with TMA loads, in `RingProducer::fill`. It counts their bytes.
template <class Ring>
class LoadSlot {
public:
    LoadSlot(const LoadSlot&) = delete;
    LoadSlot& operator=(const LoadSlot&) = delete;
    /// Returns the number of the slot in the ring.
    __device__ std::uint32_t index() const { return slot_.index(); }
    /// Returns where the bytes of a load are counted.
    __device__ ByteCounter<Ring::group> bytes() const { return slot_.bytes(); }
    /// Counts a load of `bytes` into this CTA's slot. `tma_load` calls it.
    __device__ void count(std::uint32_t bytes) { bytes_ += bytes; }

private:
    friend class RingProducer<Ring>;
    __device__ explicit LoadSlot(const FillSlot<Ring>& slot) : slot_(slot) {}

    /// Announces what was counted. In a pair both CTAs load the same number of bytes, and the first announces all.
    __device__ void announce() const
    {
        if (bytes_ == 0) {
            detail::slot_was_filled_with_nothing();
        }
        if (detail::counts_for_group<Ring::group>()) {
            slot_.announce(Ring::group == CtaGroup::pair ? 2 * bytes_ : bytes_);
        }
    }

    const FillSlot<Ring>& slot_;
    std::uint32_t bytes_ = 0;
};

/// A filled slot to read. It must be released, once.
template <class Ring>
class ReadSlot : public detail::SlotObligation {
public:
    /// Returns the number of the slot in the ring.
    __device__ std::uint32_t index() const { return index_; }

    /// Ends the calling thread's reading: arrives once in this CTA.
    __device__ void release() &&
    {
        require_read_by_threads();
        empty().arrive();
        fulfil();
    }
    /// Ends the calling warp's reading: arrives once in this CTA. Called by the whole warp.
    __device__ void release_of_warp() &&
    {
        require_read_by_threads();
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            empty().arrive();
        }
        fulfil();
    }
    /// Ends the calling thread's reading: arrives once in a peer CTA, which fills this CTA's slot, too.
    __device__ void release_to(ReadyCta peer) &&
    {
        require_read_by_threads();
        empty().arrive_at(peer);
        fulfil();
    }
    /// Ends the reading without an arrival: another thread arrives for the calling thread.
    __device__ void release_by_other() &&
    {
        require_read_by_threads();
        fulfil();
    }

private:
    friend class RingConsumer<Ring>;
    friend struct detail::SlotBarriers;
    __device__ static void require_read_by_threads()
    {
        static_assert(!std::is_same_v<typename Ring::Empty, FreedByTensorCore>,
                      "tessera: the tensor core frees this slot when it has read it: release_after_mma()");
        static_assert(!std::is_same_v<typename Ring::Empty, AccumulatorEmpty>,
                      "tessera: an accumulator is waited for and released through read_accumulators()");
    }
    __device__ Barrier<typename Ring::Empty> empty() const { return {ring_->empty_[index_], published_}; }
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
    __device__ void release_to(ReadyCta peer) &&
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

    __device__ Barrier<typename Ring::Empty> empty(std::uint32_t i) const
    {
        return {ring_->empty_[index(i)], published_};
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

    /// Fills the next slot with TMA loads: waits until it is free, calls `load(slot)` in one thread, and announces the bytes
    /// of the loads. In a pair both CTAs call it, and load the same number of bytes. Called by the whole, converged warp.
    /// @param load  issues loads into a `LoadSlot&`: `tma_load(map, tile, slot, coordinates)`
    template <class Load>
    __device__ __forceinline__ void fill(Load load)
    {
        auto slot = acquire();
        if (elect_one()) {
            load_into(slot, load);
        }
        slot.fulfil();
    }
    /// Does the same in a thread that is alone: the others of its warp have exited (`exit_thread`).
    template <class Load>
    __device__ __forceinline__ void fill_alone(Load load)
    {
        auto slot = acquire();
        load_into(slot, load);
        slot.fulfil();
    }
    /// Does the same with loads whose bytes are known before, because they are chosen at run time (`AnyTensorMap`).
    /// @param bytes  what completes the slot; for a pair, of both CTAs
    /// @param load   issues the loads; gets a `const FillSlot&`
    template <class Load>
    __device__ __forceinline__ void fill(std::uint32_t bytes, Load load)
    {
        auto slot = acquire();
        if (elect_one()) {
            if (detail::counts_for_group<Ring::group>()) {
                slot.announce(bytes);
            }
            const FillSlot<Ring>& filling = slot;
            load(filling);
        }
        slot.fulfil();
    }

    /// Waits until the next slot is free, and returns it. Called by the whole warp, even if one of its threads fills
    /// the slot: see `Barrier::wait`.
    [[nodiscard("tessera: a slot that is acquired must be published")]] __device__ FillSlot<Ring> acquire()
    {
        return FillSlot<Ring>(ring_, await_free(), published_);
    }

    /// Waits until the next slot is free, announces the bytes that TMA will write into it in this CTA (whoever issues
    /// the loads), and returns it.
    ///
    /// Called by one thread if the others of its warp have exited (`exit_thread`). Otherwise the whole warp calls `fill`.
    /// @param bytes  the bytes that complete the slot
    [[nodiscard("tessera: a slot that is acquired must be published")]] __device__ AnnouncedSlot<Ring> acquire(
        std::uint32_t bytes)
    {
        AnnouncedSlot<Ring> slot(ring_, await_free(), published_);
        slot.announce(bytes);
        return slot;
    }

    /// Waits until the consumers have freed every slot, so that no thread arrives at the ring's barriers any more.
    /// Called by the threads that called `acquire`, before they exit.
    __device__ void drain() &&
    {
        for (std::uint32_t slot = 0; slot < Ring::slots; ++slot) {
            Barrier<typename Ring::Empty>(ring_->empty_[position_.index()], published_).wait(position_.empty());
            position_.advance();
        }
    }

private:
    template <class Load>
    __device__ __forceinline__ static void load_into(const FillSlot<Ring>& slot, Load& load)
    {
        LoadSlot<Ring> loads(slot);
        load(loads);
        loads.announce();
    }

    /// Returns the number of the slot.
    __device__ std::uint32_t await_free()
    {
        const std::uint32_t index = position_.index();
        Barrier<typename Ring::Empty>(ring_->empty_[index], published_).wait(position_.empty());
        position_.advance();
        return index;
    }

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
        return wait(false);
    }
    /// Does the same after a look ahead.
    /// @param is_filled  what `is_filled` returned for this slot: if true, there is nothing to wait for
    [[nodiscard("tessera: a slot that was waited for must be released")]] __device__ ReadSlot<Ring> wait(bool is_filled)
    {
        const std::uint32_t index = position_.index();
        if (!is_filled) {
            Barrier<typename Ring::Full>(ring_->full_[index], published_).wait(position_.full());
        }
        position_.advance();
        return {ring_, index, published_};
    }

    /// Returns true if the slot after the next `skipped` ones is filled now, and does not wait. A wait for it then costs nothing,
    /// however long a barrier takes to answer. Called by the whole warp, whose lanes may get different answers.
    __device__ bool is_filled(std::uint32_t skipped = 0) const
    {
        const auto position = position_.behind(skipped);
        const Barrier<typename Ring::Full> full(ring_->full_[position.index()], published_);
        return full.try_wait(position.full());
    }

    /// Waits until the next `count` slots are filled, and returns them as one. Called by the whole warp.
    /// @param count  0 to the number of slots
    [[nodiscard("tessera: slots that were waited for must be released")]] __device__ ReadSlots<Ring> wait_for(
        std::uint32_t count)
    {
        const std::uint32_t first = position_.index();
        for (std::uint32_t i = 0; i < count; ++i) {
            Barrier<typename Ring::Full>(ring_->full_[position_.index()], published_).wait(position_.full());
            position_.advance();
        }
        return {ring_, first, count, published_};
    }

    /// Waits until the next `count` slots are filled, and leaves them for a later call. Called by the whole warp.
    __device__ void await_next(std::uint32_t count) const
    {
        auto position = position_;
        for (std::uint32_t i = 0; i < count; ++i, position.advance()) {
            Barrier<typename Ring::Full>(ring_->full_[position.index()], published_).wait(position.full());
        }
    }

    /// Returns the slot that `wait` returns after the next `skipped` ones.
    __device__ std::uint32_t next_index(std::uint32_t skipped = 0) const
    {
        const auto position = position_.behind(skipped);
        return position.index();
    }
    /// Leaves `count` slots to other consumers of the same ring. Before the caller waits for such a slot's next filling, it
    /// must know from them that this one is complete: the barrier's parity cannot tell one filling from the next but one.
    __device__ void skip(std::uint32_t count) { position_.skip(count); }

private:
    Ring* ring_;
    BarriersPublished published_;
    detail::RingPosition<Ring::slots> position_;
};

}  // namespace tessera
