#pragma once

// Whether a CTA's exit is ordered after the accesses of its peers to its shared memory.
//
// PTX ISA "Shared State Space" and "mapa": the shared memory of another CTA may be accessed only while that CTA runs. So a
// CTA must know, when its last thread exits, that its peers are done: by barrier.cluster, by waiting for the phase of the
// mbarrier at which a peer arrived, or by any other synchronization. This is a matter of order, not of time: a CTA that
// happened to exit late enough has the same fault.

#include <cstdint>
#include <vector>

#include "base/lanes.hpp"
#include "checks/clocks.hpp"

namespace tessera::emulator {

struct Operation;

/// The accesses to one CTA's shared memory by its peers, as far as the CTA may not know of them.
class ExitOrder {
public:
    /// An instruction, and who executed it.
    struct Place {
        const Operation* operation = nullptr;
        std::uint32_t rank = 0, warp = 0;  ///< of the CTA, and of the warp in it
        LaneMask lanes = 0;
    };
    struct Remote {
        Place place;
        Epoch at;
        bool arrival = false;
        std::uint32_t barrier = 0;  ///< address in the CTA
        std::uint64_t phase = 0;    ///< in which it arrived
    };

    /// A load, store or atomic. Only the last of each warp is kept: it is ordered after those before.
    void accessed(Epoch at, const Place& place);
    /// An arrival, or a count of bytes, at the CTA's mbarrier in its phase number `phase`.
    void arrived(std::uint32_t barrier, std::uint64_t phase, Epoch at, const Place& place);
    /// A thread of the CTA has seen that so many phases are complete: it knows of the arrivals in them.
    void observed(std::uint32_t barrier, std::uint64_t phases);
    /// The CTA has initialized or invalidated the mbarrier.
    void forget(std::uint32_t barrier);

    [[nodiscard]] const std::vector<Remote>& remotes() const noexcept { return remotes_; }

private:
    std::vector<Remote> remotes_;
};

}  // namespace tessera::emulator
