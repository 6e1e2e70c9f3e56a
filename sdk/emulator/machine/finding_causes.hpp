#pragma once

// What findings have in common, so that they are counted as one, and what a trap means.

#include <string>

#include "checks/report.hpp"
#include "program/program.hpp"

namespace tessera::emulator {

/// The cause of a race, equal for both sides: the two places, in order. `message` names the other side's line. Empty if
/// it names none.
[[nodiscard]] std::string race_cause(const Program& program, const Finding& finding);

/// The meaning of a trap, a sentence that begins with ": ". In a destructor it names the class.
[[nodiscard]] std::string trap_reason(const Finding& finding);

}  // namespace tessera::emulator
