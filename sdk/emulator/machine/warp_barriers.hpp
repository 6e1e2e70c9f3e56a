#pragma once

// The barrier state of a warp's threads, per lane, because each lane arrives and waits for itself.

#include <array>
#include <cstdint>

#include "base/lanes.hpp"
#include "checks/clocks.hpp"

namespace tessera::emulator {

/// One wait at an mbarrier, for statistics: it counts once, however often the program polls.
struct MbarrierWait {
    std::uint32_t address = 0;
    std::uint32_t cta = 0;
    std::uint64_t phase = 0;

    friend bool operator==(const MbarrierWait&, const MbarrierWait&) = default;
};

struct WarpBarriers {
    // bar, barrier
    LaneMask at_named = 0;                               ///< lanes that have arrived at a named barrier and wait there
    std::array<std::uint8_t, warp_size> named{};         ///< barrier number
    std::array<std::uint64_t, warp_size> named_phase{};  ///< and the phase that they wait for
    std::array<std::uint32_t, warp_size> reduced_count{};  ///< results of bar.red, when the phase is complete
    LaneMask reduced_and = 0, reduced_or = 0;

    // barrier.cluster
    LaneMask cluster_current = 0;                          ///< lanes that have arrived in the current phase
    LaneMask cluster_open = 0;                             ///< lanes that have arrived and have not waited since
    std::array<std::uint64_t, warp_size> cluster_phase{};  ///< the phase in which they arrived
    bool cluster_has_started = false;  ///< it has waited there: all CTAs run, even if the arrivals were relaxed

    unsigned given_up =
        0;  ///< mbarrier.try_wait that returned false since the last success because nothing else could run

    MbarrierWait counted;  ///< the last wait counted by statistics

    FencePoints fences;
};

}  // namespace tessera::emulator
