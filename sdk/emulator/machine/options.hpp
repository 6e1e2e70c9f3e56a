#pragma once

// How a launch is scheduled and checked.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tessera::emulator {

enum class Schedule : std::uint8_t {
    in_order,     ///< warps in turn, asynchronous work soon and in the order of issue
    random,       ///< seeded choices for everything
    adversarial,  ///< asynchronous work as late or as early as PTX allows, warps at very different speeds; seeded
};

enum class Numerics : std::uint8_t {
    exact,  ///< tensor cores sum as measured on hardware, bit by bit
    fast,   ///< sums in f32 with vectors; the last bits differ
};

/// Memory accesses of a warp, and their checks, for all lanes at once (where their addresses allow it) or lane by lane.
/// The results and the findings are the same.
enum class Paths : std::uint8_t {
    fast,   ///< all lanes at once
    plain,  ///< lane by lane, as the rules are written down
    both,   ///< all lanes at once, and compared with the plain path; PathsDiffer is thrown where they differ
};

[[nodiscard]] std::string_view name_of(Schedule schedule) noexcept;
[[nodiscard]] std::string_view name_of(Numerics numerics) noexcept;
[[nodiscard]] std::string_view name_of(Paths paths) noexcept;

/// The emulated device's own fault: its paths disagree (Paths::both). The launch ends with cudaErrorLaunchFailure.
class PathsDiffer : public std::logic_error {
public:
    explicit PathsDiffer(const std::string& what) : std::logic_error("--paths both: " + what) {}
};

struct Options {
    std::uint64_t seed = 1;
    Schedule schedule = Schedule::in_order;
    Numerics numerics = Numerics::exact;
    Paths paths = Paths::fast;
    bool check = true;  ///< races, uninitialized reads, protocol faults; out of bounds is always checked
    /// Optional findings: common in practice, and harmless on known hardware.
    bool same_value_races = false, exits_before_read = false;
    /// An access in the padding after an allocation is reported and continues, as on a GPU: see
    /// AddressSpace::find_with_padding.
    bool overruns_continue = false;
    bool strict = false;   ///< a finding ends the launch with an error
    unsigned threads = 0;  ///< CPU threads for clusters; 0: all cores
    /// A cluster counts as hung when it has run this many instructions, for at least this many seconds, without a
    /// visible effect; all clusters together, if all poll memory.
    std::uint64_t hang_limit = 5'000'000;
    double hang_seconds = 10;
};

}  // namespace tessera::emulator
