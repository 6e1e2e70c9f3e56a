#pragma once

// From lines of PTX, which messages name, to places in the program.

#include <cstdint>
#include <string>
#include <string_view>

#include "checks/report.hpp"
#include "program/program.hpp"

namespace tessera::emulator {

/// An operation on this line of the PTX; null if there is none.
[[nodiscard]] const Operation* operation_of_line(const Program& program, std::uint32_t line);

/// The cause of a race, equal for both sides: the two places, in order. `message` names the other side's line. Empty if
/// it names none.
[[nodiscard]] std::string race_cause(const Program& program, const Finding& finding);

/// The meaning of a trap, a sentence that begins with ": ". In a destructor it names the class.
[[nodiscard]] std::string trap_reason(const Finding& finding);

}  // namespace tessera::emulator
