#pragma once

// From lines of PTX, which messages name, to places in the program.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "program/program.hpp"

namespace tessera::emulator {

/// An operation on this line of the PTX; null if there is none.
[[nodiscard]] const Operation* operation_of_line(const Program& program, std::uint32_t line);

/// Removes the next "PTX line 12", and the text before it, from the beginning of `text` and appends both to `taken`;
/// returns the line, if any.
std::optional<std::uint32_t> take_line(std::string_view& text, std::string& taken);

}  // namespace tessera::emulator
