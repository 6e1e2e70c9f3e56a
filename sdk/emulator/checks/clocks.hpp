#pragma once

// Who knows of whose work: vector clocks of the warps and of the asynchronous operations of one cluster.
//
// Every warp is an agent; every asynchronous operation (a bulk copy, an MMA) is one while it runs. Synchronization
// passes on what an agent has seen through a SyncPoint (the state of a barrier).
//
// The lanes of a warp are one agent: they never race with each other here. Only fence.proxy.async is a matter of single
// lanes (PTX ISA "Proxies"): it makes visible what the executing thread wrote, so the clocks remember which lanes
// fenced when. That is all it takes to know what the async proxy may see: a write is visible to an asynchronous agent
// if the agent has seen a moment of the writer at which the writing lane had executed the fence after the write.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "machine/lanes.hpp"

namespace tessera::emulator {

using Agent = std::uint16_t;

/// A moment of an agent.
struct Epoch {
    Agent agent = 0;
    std::uint32_t time = 0;  ///< 0: never
};

/// What a barrier passes from those who arrive to those who wait.
struct SyncPoint {
    std::vector<std::uint32_t> seen;  ///< by agent; missing entries are 0
    void clear() noexcept { seen.clear(); }
    void join(const SyncPoint& other);
};

class Clocks {
public:
    /// `warps` agents 0..warps-1; asynchronous ones get numbers above.
    explicit Clocks(unsigned warps);

    /// The present moment of `agent`.
    [[nodiscard]] Epoch now(Agent agent) const noexcept { return {agent, agents_[agent].time}; }
    /// Everything `agent` has done or seen so far is passed to `point`; its clock advances.
    void release(Agent agent, SyncPoint& point);
    /// `agent` sees what was passed to `point`.
    void acquire(Agent agent, const SyncPoint& point);
    /// Does `agent` know that `epoch` is over?
    [[nodiscard]] bool ordered(Epoch epoch, Agent agent) const noexcept
    {
        const State& state = agents_[agent];
        if (epoch.time == 0 || (epoch.agent == agent && epoch.time >= state.start)) {
            return true;
        }
        return epoch.agent < state.seen.size() && state.seen[epoch.agent] >= epoch.time;
    }
    /// ... and that it is visible to the async proxy, if `lane` of the warp did it? (`any_lane`: one of them.)
    [[nodiscard]] bool ordered_for_async(Epoch epoch, Agent agent, unsigned lane = any_lane) const noexcept;
    static constexpr unsigned any_lane = warp_size;
    [[nodiscard]] bool is_async(Agent agent) const noexcept { return agent >= warps_; }

    /// Lanes executed fence.proxy.async: what *they* wrote so far counts for the async proxy. The warp's clock
    /// advances.
    void proxy_fence(Agent warp, LaneMask lanes);

    /// A new asynchronous agent that has seen what `issuer` has seen (the issuer's clock advances).
    [[nodiscard]] Agent begin_async(Agent issuer);
    /// `async` may also rely on the last fence.proxy.async of `issuer`'s whole warp for what others had done before it
    /// as far as the issuer knew then: a proxy fence may stand anywhere on the way from the write to the read. This is
    /// for wgmma, where compilers (Triton's) put one fence of all threads between the barrier and the first wgmma. For
    /// copies, which one thread issues, that would take a forgotten fence of the writers for a right program.
    void trust_issuers_fence(Agent async, Agent issuer);
    /// The operation is complete: what it did is passed to `point` (may be called more than once, e.g. for multicast).
    void complete_async(Agent async, SyncPoint& point);
    /// Its number may be used again.
    void end_async(Agent async);

    /// Accesses that synchronize through memory (volatile, relaxed and stronger, atomics) release to and acquire from
    /// the point of their address. Neighbours (8 bytes in shared, 128 in global memory) and other addresses share a
    /// fixed number of points, so that a kernel with millions of atomics stays cheap: too much order is assumed, never
    /// too little. `address` is generic, so that it is unique in the cluster.
    [[nodiscard]] SyncPoint& memory_point(std::uint64_t address) noexcept
    {
        return memory_points_[memory_slot(address)];
    }
    [[nodiscard]] static unsigned memory_slot(std::uint64_t address) noexcept
    {
        const unsigned granule = address >> 48 != 0 ? 3 : 7;  // shared memory's generic addresses are high up
        return static_cast<unsigned>(((address >> granule) * 0x9E37'79B9'7F4A'7C15ull) >> 56);
    }
    static constexpr unsigned memory_slots = 256;

private:
    struct Fence {
        std::uint32_t time;
        LaneMask lanes;
    };
    struct State {
        std::uint32_t time = 1;
        std::uint32_t start = 1;                 // moments before belong to an operation that had the same number
        std::vector<std::uint32_t> seen;         // of others; the own entry: of operations that had the number before
        std::vector<Fence> fences;               // by rising time
        std::vector<std::uint32_t> fenced_seen;  // of others, at the last fence of all lanes
        std::uint32_t forgotten = 0;             // fences before this moment are no longer known: all counts as fenced
        bool in_use = false;
    };
    static void join(std::vector<std::uint32_t>& into, const std::vector<std::uint32_t>& from);
    static void note(std::vector<std::uint32_t>& seen, Agent agent, std::uint32_t time);

    std::vector<State> agents_;
    unsigned warps_;
    std::deque<Agent> free_;
    std::array<SyncPoint, memory_slots> memory_points_;
};

}  // namespace tessera::emulator
