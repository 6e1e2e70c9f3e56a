#pragma once

// From lines of PTX, which messages name, to the program.

#include <cstdint>
#include <string>
#include <string_view>

#include "checks/report.hpp"
#include "program/program.hpp"

namespace tessera::emulator {

/// An operation of this line of the PTX; null if there is none.
[[nodiscard]] const Operation* operation_of_line(const Program& program, std::uint32_t line);

/// A race is one cause, whichever side finds it: the two places, in order. `message` names the other side's line. Empty
/// if it names none.
[[nodiscard]] std::string race_cause(const Program& program, const Finding& finding);

/// What a trap means, a sentence that begins with ": ". In the destructor of a class it names the class.
[[nodiscard]] std::string trap_reason(const Finding& finding);

}  // namespace tessera::emulator
