#pragma once

// Happens-before inside one cluster: vector clocks of the warps and of the asynchronous operations.
//
// Every warp is an agent. Every asynchronous operation (a bulk copy, an MMA) is an agent while it runs. Synchronization
// passes on what an agent has seen through a SyncPoint, the state of a barrier.
//
// The lanes of a warp are one agent. fence.proxy.async concerns single lanes (PTX ISA "Proxies"): it makes visible what
// the executing thread wrote. So the clocks remember which lanes fenced when. A write is visible to an asynchronous
// agent if that agent has seen a time of the writer at which the writing lane had executed the fence after the write.
//
// The order of lanes among themselves is apart from this. bar.warp.sync orders the memory accesses of its lanes (PTX
// ISA "bar.warp.sync"); shfl, vote and the like do not. What all lanes acquire together counts as order among them: this
// assumes too much order, never too little. What only some lanes acquire, the others do not know (StaleLanes). What only
// some lanes release does not contain what the others did (Release).
//
// An interval begins whenever all warps of a cluster wait for each other: each of them knows everything before it. Within
// an interval a warp usually knows nothing of what the others do in it, so that nobody needs to ask for each access.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/agent.hpp"
#include "base/lanes.hpp"
#include "base/memory_kinds.hpp"
#include "base/spare_arrays.hpp"
#include "base/spare_objects.hpp"

namespace tessera::emulator {

/// Which accesses a proxy fence orders; a set of bits.
using ProxyFences = std::uint8_t;
inline constexpr ProxyFences fences_shared = 1;         ///< generic proxy and async proxy, in shared memory
inline constexpr ProxyFences fences_global = 2;         ///< the same in global memory
inline constexpr ProxyFences fences_tensormap = 4;      ///< generic proxy and tensormap proxy
inline constexpr ProxyFences fences_barrier_init = 16;  ///< fence.mbarrier_init
inline constexpr ProxyFences fences_one_way =
    8;  ///< beside one of the above: orders the executing thread's accesses only

/// The lanes of a warp that execute an instruction, of those that still run.
struct LanesOfWarp {
    LaneMask lanes = all_lanes, live = all_lanes;
    [[nodiscard]] bool all() const noexcept { return (live & ~lanes) == 0; }
};

/// A point in time of an agent.
struct Epoch {
    Agent agent = 0;
    std::uint32_t time = 0;  ///< 0: never
};

/// By agent; missing entries are 0.
using Times = std::vector<std::uint32_t, SpareAllocator<std::uint32_t>>;

/// What a barrier passes from threads that arrive to threads that wait.
struct SyncPoint {
    Times seen;
    std::uint32_t releases = 0;  ///< of Clocks, at the last release to this point
    void clear() noexcept
    {
        seen.clear();
        releases = 0;
    }
    void join(const SyncPoint& other);
};

/// What a place in memory passes on, by scope: a release at CTA scope reaches threads of its own CTA, and an acquire at
/// CTA scope receives what threads of its own CTA have released (PTX ISA "Morally strong operations").
struct ScopedPoint {
    SyncPoint wide;               ///< released at the scope of the cluster, or a larger one
    std::vector<SyncPoint> near;  ///< released at any scope, by rank of the CTA
};

/// Relaxed accesses synchronize together with fences only (PTX ISA "Release and acquire patterns"). What a warp had done
/// or seen at its last fence of each scope, which its relaxed stores and arrivals pass on; and what its relaxed loads and
/// waits have received, which it has seen from the next fence on.
struct FencePoints {
    SyncPoint fenced_near, fenced_wide;
    SyncPoint observed_near, observed_wide;
};

class Clocks {
public:
    /// `warps` agents 0..warps-1, of `ctas` CTAs. Asynchronous agents get higher numbers.
    explicit Clocks(unsigned warps, unsigned ctas = 1);

    /// The current time of `agent`.
    [[nodiscard]] Epoch now(Agent agent) const noexcept { return {agent, agents_[agent].time}; }
    /// Passes everything that `agent`, or these lanes of the warp, have done or seen so far to `point`. The agent's clock
    /// advances.
    void release(Agent agent, SyncPoint& point, LanesOfWarp by = {});
    /// `agent`, or these lanes of the warp, now have seen what was passed to `point`.
    void acquire(Agent agent, const SyncPoint& point, LanesOfWarp by = {});
    /// Returns true if `agent` knows that `epoch` is over.
    [[nodiscard]] bool ordered(Epoch epoch, Agent agent) const noexcept
    {
        const State& state = agents_[agent];
        if (epoch.time == 0 || (epoch.agent == agent && epoch.time >= state.start)) {
            return true;
        }
        return epoch.agent < state.seen.size() && state.seen[epoch.agent] >= epoch.time;
    }
    /// The number of releases so far, by all agents: a stamp that needs no agent.
    [[nodiscard]] std::uint32_t releases() const noexcept { return releases_; }
    /// The agent can know of another's access only if fewer releases than this came before the access.
    [[nodiscard]] std::uint32_t knows_releases(Agent agent) const noexcept { return agents_[agent].knows_releases; }
    /// Returns true if, in addition, the write is visible to the async proxy when `lane` of the warp made it
    /// (`any_lane`: any one of them).
    [[nodiscard]] bool ordered_for_async(Epoch epoch, Agent agent, unsigned lane = any_lane) const noexcept;
    static constexpr unsigned any_lane = warp_size;
    [[nodiscard]] bool is_async(Agent agent) const noexcept { return agent >= warps_; }

    /// `lanes` executed a proxy fence: what *they* wrote so far counts for the other proxy. The warp's clock advances.
    void proxy_fence(Agent warp, LaneMask lanes, ProxyFences fences = fences_shared | fences_global);
    /// Returns true if `lane` executed one of these fences after `epoch`, and `agent` knows that it did.
    [[nodiscard]] bool fenced(Epoch epoch, Agent agent, unsigned lane, ProxyFences fences) const noexcept;
    /// Returns true if `warp` executed one of these fences when it had seen `epoch`. Only its last fence of each kind is
    /// known.
    [[nodiscard]] bool fenced_by_reader(Epoch epoch, Agent warp, ProxyFences fences) const noexcept;

    // --- lanes of one warp (lane_clocks.cpp) ---
    /// These lanes of a warp, of those that still run, synchronized with each other. The warp's clock advances.
    void sync_lanes(Agent warp, LaneMask lanes, LaneMask live);
    /// Lanes of the warp have waited for each other at an instruction that does not order memory.
    void meet(Agent warp) noexcept
    {
        ++changes_;
        ++agents_[warp].meetings;
    }
    /// Changes when lanes of the warp meet or synchronize.
    [[nodiscard]] std::uint64_t meetings(Agent warp) const noexcept
    {
        return agents_[warp].meetings + (std::uint64_t{agents_[warp].lanes_together} << 32);
    }
    /// These lanes of a warp write now.
    void note_write(Agent warp, LaneMask lanes) noexcept;
    /// Lanes of the warp have written, or waited for copies of their own, since all of them synchronized; or some of them
    /// know more than others.
    [[nodiscard]] bool lanes_differ(Agent warp) const noexcept
    {
        const State& state = agents_[warp];
        return state.lanes_apart >= state.lanes_together || !state.stale.empty();
    }
    /// All lanes of the warp know what came before this interval, whatever some of them have done or learned in it.
    [[nodiscard]] bool lanes_know_before_interval(Agent warp) const noexcept
    {
        return agents_[warp].lanes_together > interval_starts_[warp];
    }
    [[nodiscard]] bool some_lanes_are_stale(Agent warp) const noexcept { return !agents_[warp].stale.empty(); }
    /// Each of `lanes` has waited for its part of `copy`, an asynchronous operation that the lanes `issuers` issued, and
    /// for no other. `point` is what the copy did. The warp's clock advances.
    void acquire_own(Agent warp, const SyncPoint& point, Agent copy, LaneMask lanes, LaneMask issuers);
    /// Of an access that the warp as a whole knows to be over. Returns true if lane `reader` of it knows, too. `lane`: who
    /// accessed (`any_lane`: unknown).
    [[nodiscard]] bool lane_knows(Agent warp, unsigned reader, Epoch epoch, unsigned lane) const noexcept;
    /// Returns true if some accesses of `agent` depend on the lane: released() must be asked.
    [[nodiscard]] bool releases_by_lane(Agent agent) const noexcept
    {
        const State& state = agents_[agent];
        return !state.lane_releases.empty() || (state.own != nullptr && state.own->in_use);
    }
    /// Of an access for which ordered() is true: returns true if what `agent` has seen contains it when `lane` made it.
    [[nodiscard]] bool released(Epoch epoch, unsigned lane, Agent agent) const noexcept;
    /// All lanes of the warp know what any of them did before this time.
    [[nodiscard]] std::uint32_t lanes_together(Agent warp) const noexcept { return agents_[warp].lanes_together; }
    /// Returns true if lane `reader` of the warp knows what lane `writer` did at `time`.
    [[nodiscard]] bool lanes_ordered(Agent warp, std::uint32_t time, unsigned writer, unsigned reader) const noexcept
    {
        const State& state = agents_[warp];
        return writer == reader || time < state.lanes_together ||
               (state.lanes_know != nullptr && (*state.lanes_know)[reader][writer] >= time);
    }

    /// All warps wait, and acquire this before they go on. Everything that they have done has been released to it.
    void begin_interval(const SyncPoint& acquired);
    /// Another one after each call of a function that is not const: until then, all others say the same.
    [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
    /// The number of the current interval.
    [[nodiscard]] std::uint32_t interval() const noexcept { return interval_; }
    /// By warp: times from these on are in the current interval.
    [[nodiscard]] const std::vector<std::uint32_t>& interval_starts() const noexcept { return interval_starts_; }
    /// The last interval that began when no asynchronous operation was in flight: nobody will access memory ever again
    /// without knowing what came before it.
    [[nodiscard]] std::uint32_t quiet_interval() const noexcept { return quiet_interval_; }
    /// Returns true if all agents know of this access, and all that will be.
    [[nodiscard]] bool known_to_all(Epoch epoch) const noexcept
    {
        return epoch.agent < quiet_starts_.size() && epoch.time < quiet_starts_[epoch.agent];
    }
    /// Returns true if all warps have known that this is over since the interval began, all lanes' parts of it.
    [[nodiscard]] bool over_before_interval(Epoch epoch) const noexcept;
    /// Returns true if the warp knows nothing of what other warps have done in this interval.
    [[nodiscard]] bool on_its_own(Agent warp) const noexcept { return agents_[warp].met != interval_; }

    /// Returns a new asynchronous agent that has seen what `issuer`, or these lanes of it, have seen. The issuer's clock
    /// advances.
    [[nodiscard]] Agent begin_async(Agent issuer, LanesOfWarp by = {});
    /// Lets `async` also rely on the last fence.proxy.async of `issuer`'s whole warp, for everything that the issuer
    /// had seen then: a proxy fence may be anywhere between the write and the read. This is for wgmma, where compilers
    /// (Triton's) put one fence of all threads between the barrier and the first wgmma. Copies do not use it: one
    /// thread issues them, and a forgotten fence of the writers would go unnoticed.
    void trust_issuers_fence(Agent async, Agent issuer);
    /// The operation is complete: passes what it did to `point`. May be called more than once, e.g. for multicast.
    void complete_async(Agent async, SyncPoint& point);
    /// The agent's number may be reused.
    void end_async(Agent async);

    /// A strong read of `point`, or a strong write, by `agent` in the CTA `rank`, with the fences of its warp.
    void read_point(Agent agent, unsigned rank, MemoryOrder order, const ScopedPoint& point, FencePoints& fences,
                    LanesOfWarp by = {});
    void write_point(Agent agent, unsigned rank, MemoryOrder order, ScopedPoint& point, const FencePoints& fences,
                     LanesOfWarp by = {});
    /// A fence of `agent`.
    void fence(Agent agent, MemoryOrder order, FencePoints& fences, LanesOfWarp by = {});

    /// The point of an address. Accesses that synchronize through memory (volatile, relaxed and stronger, atomics)
    /// release to it and acquire from it. Neighbours (8 bytes in shared, 128 in global memory) and other addresses
    /// share a fixed number of points, so that a kernel with millions of atomics stays cheap. This assumes too much
    /// order, never too little. `address` is generic, so that it is unique in the cluster.
    [[nodiscard]] ScopedPoint& memory_point(std::uint64_t address);
    [[nodiscard]] static unsigned memory_slot(std::uint64_t address) noexcept
    {
        const unsigned granule = address >> 48 != 0 ? 3 : 7;  // generic addresses of shared memory have high bits set
        return static_cast<unsigned>(((address >> granule) * 0x9E37'79B9'7F4A'7C15ull) >> 56);
    }
    static constexpr unsigned memory_slots = 256;

private:
    struct Fence {
        std::uint32_t time;
        LaneMask lanes;
        ProxyFences kinds;
    };
    /// By lane: until when it knows what each lane did.
    using LanesKnow = std::array<std::array<std::uint32_t, warp_size>, warp_size>;
    /// Lanes that know less than the warp, because others have acquired more since all of them synchronized.
    struct StaleLanes {
        LaneMask lanes;
        Times seen;
    };
    /// A release by some lanes, or one after it. It contains what its lanes did and knew.
    struct Release {
        std::uint32_t time;
        LaneMask lanes;
        std::uint32_t together;                                       // all lanes knew what was before
        std::shared_ptr<std::array<std::uint32_t, warp_size>> known;  // by lane; null: no more than that
    };
    /// Of an asynchronous operation of several lanes: when each lane of the warp had waited for its part; 0: not yet.
    struct OwnParts : Spare<OwnParts> {
        Agent warp = 0;
        LaneMask issuers = 0;
        bool in_use = false;
        std::array<std::uint32_t, warp_size> waited{};
    };
    struct State {
        std::uint32_t time = 1;
        std::uint32_t start = 1;  // earlier times belong to an operation that had the same number
        std::uint32_t knows_releases = 0;
        Times seen;                               // of other agents; own entry: operations that had the number before
        std::vector<Fence> fences;                // in the order of time
        Times fenced_seen;                        // of other agents, at the last fence of all lanes for shared memory
        std::array<Times, 3> reader_fenced_seen;  // of all agents, at the last fence of any lane; by
                                                  // bit of ProxyFences
        std::uint32_t forgotten = 0;              // fences before this time are forgotten: everything counts as fenced
        std::uint32_t lanes_together = 1;
        std::unique_ptr<LanesKnow> lanes_know;  // if some lanes have synchronized since
        std::uint32_t meetings = 0;
        std::uint32_t lanes_apart = 0;  // the last time at which lanes became different
        LaneMask wrote = 0;             // lanes, since all of them synchronized
        std::vector<StaleLanes> stale;
        std::vector<Release> lane_releases;    // in the order of time, from the first that was not of all lanes
        std::uint32_t last_release = 0;        // that contains what all lanes did, before the first of these
        std::uint32_t forgotten_releases = 0;  // releases before this time are forgotten: they contain everything
        std::unique_ptr<OwnParts> own;         // of an asynchronous operation
        std::uint32_t met = 0;                 // the last interval in which it learned what another warp did in it
        bool in_use = false;
    };
    [[nodiscard]] bool tells_of_interval(const SyncPoint& point, Agent warp) const noexcept;
    static void join(Times& into, const Times& from);
    static void note(Times& seen, Agent agent, std::uint32_t time);
    static void pass_seen(const State& state, LanesOfWarp by, Times& into);
    static void note_release(State& state, LanesOfWarp by);
    /// Other lanes have written since all synchronized, some of which may have exited.
    static bool others_wrote(const State& state, LaneMask lanes) noexcept
    {
        return lanes != all_lanes && state.lanes_apart >= state.lanes_together && (state.wrote & ~lanes) != 0;
    }
    void acquire_some(Agent agent, const SyncPoint& point, LanesOfWarp by);
    static LaneMask join_stale(State& state, LaneMask lanes, const Times& seen);
    static void refresh(State& state, Agent agent, LaneMask live);

    std::vector<State, SpareAllocator<State>> agents_;
    std::uint32_t releases_ = 0;
    std::uint64_t changes_ = 1;
    unsigned warps_;
    std::deque<Agent> free_;
    std::uint32_t interval_ = 1, quiet_interval_ = 1;
    std::vector<std::uint32_t> interval_starts_, quiet_starts_;  // by warp
    Times known_before_;                                         // by agent
    std::uint32_t in_flight_ = 0;                                // asynchronous operations
    unsigned ctas_;
    std::unique_ptr<std::array<ScopedPoint, memory_slots>> memory_points_;  // null until one is needed
};

}  // namespace tessera::emulator
