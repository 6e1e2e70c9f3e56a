#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tessera::emulator {

/// Memory accesses of a warp, and their checks, for all lanes at once (where their addresses allow it) or lane by lane.
/// The results and the findings are the same.
enum class Paths : std::uint8_t {
    fast,   ///< all lanes at once
    plain,  ///< lane by lane, as the rules are written down
    both,   ///< all lanes at once, and compared with the plain path; PathsDiffer is thrown where they differ
};

/// The emulated device's own fault: its paths disagree (Paths::both). The launch ends with cudaErrorLaunchFailure.
class PathsDiffer : public std::logic_error {
public:
    explicit PathsDiffer(const std::string& what) : std::logic_error("--paths both: " + what) {}
};

}  // namespace tessera::emulator
