#pragma once

// Work beside the instruction stream: bulk copies, MMAs, commits, responses. The cluster's scheduler decides when each
// of them makes its next step.

#include <cstdint>
#include <memory>
#include <string>

#include "base/agent.hpp"
#include "base/lanes.hpp"

namespace tessera::emulator {

class Cluster;
class Warp;
struct Operation;

/// Operations of one queue execute in the order of issue; those of different queues in any order.
using AsyncQueue = std::uint64_t;
inline constexpr AsyncQueue unordered = 0;  ///< a queue of its own

class AsyncOperation {
public:
    virtual ~AsyncOperation() = default;

    /// Performs one step (for a load: write the data, then complete_tx). Returns true when nothing is left to do.
    /// Called by the scheduler, never from within an instruction.
    virtual bool step(Cluster& cluster) = 0;
    /// Returns false while it waits for something other than its turn (a peer's allocation).
    [[nodiscard]] virtual bool ready(const Cluster&) const { return true; }
    /// Returns true if a fence.proxy.async of the issuing warp makes other threads' writes visible to this operation.
    /// See Clocks::trust_issuers_fence.
    [[nodiscard]] virtual bool trusts_issuers_fence() const { return false; }
    /// "cp.async.bulk.tensor to shared 0x1400 of CTA 1", for reports of hangs.
    [[nodiscard]] virtual std::string describe() const = 0;

    enum class Kind : std::uint8_t { load, store, mma, other };
    Kind kind = Kind::other;
    bool meets_clusters = false;  ///< a reduction in global memory: its order among the clusters is part of the result
    // Set by Cluster::submit:
    AsyncQueue queue = unordered;
    std::uint32_t number = 0;              ///< in the cluster's order of issue, from 1
    std::uint64_t issued_at = 0;           ///< scheduler step
    const Operation* operation = nullptr;  ///< the instruction, for reports
    std::uint32_t cta_rank = 0, warp = 0;  ///< of the issuer
    LaneMask lanes = 0;
    std::int64_t priority = 0;  ///< for a scheduler; 0: not set
    Agent agent = 0;            ///< its own agent (Clocks::begin_async); the scheduler ends it when step() returns true
};

}  // namespace tessera::emulator
