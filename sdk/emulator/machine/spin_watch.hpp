#pragma once

// Warps that poll memory with ordinary loads. Such a load is like any other, so a loop of them is recognized by its state:
// registers and places in the program come back to what they were.

#include <cstdint>
#include <vector>

namespace tessera::emulator {

class Warp;

/// Of one cluster. A loop that counts its tries, or looks at a clock, is not recognized.
class SpinWatch {
public:
    /// After so many steps without a visible effect, the states of the warps are looked at from time to time.
    static constexpr std::uint64_t quiet_steps = 131'072;

    /// The cluster's last visible effect was at step `progress`, and now it has made `steps`. Returns the step at which to
    /// call again.
    std::uint64_t look(const std::vector<Warp*>& warps, std::uint64_t steps, std::uint64_t progress);
    /// Every warp waits, or has come back to a state of its own since the last visible effect: nothing changes any more
    /// unless memory does.
    [[nodiscard]] bool spins(std::uint64_t progress) const noexcept { return spins_ && since_ == progress; }

private:
    struct Seen {
        std::vector<std::uint64_t> states;
        bool repeated = false;
    };
    std::vector<Seen> seen_;  // by warp
    std::uint64_t since_ = 0;
    unsigned looks_ = 0;
    bool spins_ = false;
};

}  // namespace tessera::emulator
