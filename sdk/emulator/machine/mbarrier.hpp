#pragma once

// mbarrier objects (PTX ISA 9.7.13.15). Their state is kept here and not in the 64 bits of shared memory, which are
// opaque to programs.

#include <cstdint>
#include <string>

#include "checks/clocks.hpp"

namespace tessera::emulator {

/// Largest arrival count, and largest number of bytes of a phase.
inline constexpr std::int64_t mbarrier_limit = (1 << 20) - 1;

struct Mbarrier {
    std::uint64_t phase = 0;    ///< number of completed phases; the current parity is phase & 1
    std::int64_t expected = 0;  ///< arrivals per phase
    std::int64_t pending = 0;   ///< arrivals still missing
    std::int64_t transactions =
        0;                     ///< bytes expected and not yet complete; negative if more are complete than expected
    SyncPoint arriving;        ///< of the current phase: what threads of other CTAs did
    SyncPoint arriving_near;   ///< what threads of the barrier's CTA, and asynchronous work, did
    SyncPoint completed;       ///< of the completed phases: what waiters acquire
    SyncPoint completed_near;  ///< the same for waiters at CTA scope
    Epoch initialized;         ///< when mbarrier.init was executed
    std::uint8_t initialized_lane = 0;  ///< by this lane
    std::uint32_t copies = 0;           ///< asynchronous operations in flight that will complete bytes here
    std::uint32_t copies_missed = 0;    ///< operations in flight when a phase completed without them
    std::uint64_t arrivals_total = 0;   ///< for reports
    std::string last_arrival;           ///< for reports: by whom

    [[nodiscard]] bool parity_completed(unsigned parity) const noexcept { return (phase & 1) != (parity & 1); }
    /// mbarrier.init. @return a sentence if the count is out of range, else empty
    std::string initialize(std::int64_t count);
    /// arrive(count); completes the phase if due. `count` may be 0 (only checks).
    /// @return a sentence if the count is out of range, else empty
    std::string arrive(std::int64_t count);
    /// expect-tx(bytes) for positive, complete-tx for negative `bytes`.
    /// @return a sentence if the sum is out of range, else empty
    std::string add_transactions(std::int64_t bytes);
    /// arrive_drop: the next phases expect fewer arrivals; arrives. @return as arrive()
    std::string drop(std::int64_t count);
    /// The current phase, and only this one, expects one more arrival (cp.async.mbarrier.arrive). @return as arrive()
    std::string add_pending(std::int64_t count);

    /// "phase 3 (parity 1): 1 of 2 arrivals pending, 1024 bytes of transactions outstanding"
    [[nodiscard]] std::string describe() const;
    /// The number of copies that the last completed phase did not wait for, returned once; 0 if none.
    [[nodiscard]] std::uint32_t take_copies_missed() noexcept;

private:
    void complete_if_due();
};

}  // namespace tessera::emulator
