#pragma once

// How a launch is scheduled and checked.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/paths.hpp"

namespace tessera::emulator {

enum class Schedule : std::uint8_t {
    in_order,     ///< warps in turn, asynchronous work soon and in the order of issue
    random,       ///< seeded choices for everything
    adversarial,  ///< asynchronous work as late or as early as PTX allows, warps at very different speeds; seeded
    pct,          ///< by random priorities that change at a few random places: see PriorityScheduler
};

class Monitor;       // machine/monitor.hpp
class Recorder;      // machine/recording.hpp
class ScheduleFile;  // machine/recording.hpp

enum class Numerics : std::uint8_t {
    exact,  ///< tensor cores sum as measured on hardware, bit by bit
    fast,   ///< sums in f32 with vectors; the last bits differ
};

[[nodiscard]] std::string_view name_of(Schedule schedule) noexcept;
[[nodiscard]] std::optional<Schedule> find_schedule(std::string_view name) noexcept;
[[nodiscard]] std::string_view name_of(Numerics numerics) noexcept;
[[nodiscard]] std::string_view name_of(Paths paths) noexcept;

struct Options {
    std::uint64_t seed = 1;
    Schedule schedule = Schedule::in_order;
    /// pct: a fault that needs so many ordered pairs of steps is found with a known probability.
    std::uint32_t depth = 3;
    /// pct: the steps of a cluster as --statistics counts them; 0: unknown.
    std::uint64_t depth_steps = 0;
    /// Writes the choices of each launch; may be null.
    std::shared_ptr<Recorder> recorder;
    /// Makes the choices of each launch; may be null. `schedule` and `seed` are those that were recorded.
    std::shared_ptr<ScheduleFile> recording;
    /// Receives the events of each launch; may be null.
    std::shared_ptr<Monitor> monitor;
    Numerics numerics = Numerics::exact;
    Paths paths = Paths::fast;
    bool check = true;  ///< races, uninitialized reads, protocol faults; out of bounds is always checked
    /// Optional findings: common in practice, and harmless on known hardware.
    bool same_value_races = false, exits_before_read = false, strict_proxy_fences = false, flags_before_stores = false,
         failed_calls = false;
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

/// As the value of --schedule: "pct:3", "replay:FILE".
[[nodiscard]] std::string shown_schedule(const Options& options);

}  // namespace tessera::emulator
