#pragma once

// From PTX text to ptx::Module.

#include <stdexcept>
#include <string>
#include <string_view>

#include "ptx/ast.hpp"

namespace tessera::emulator::ptx {

/// The text is not PTX that this parser knows. what(): "PTX line 12: expected ';' after the operands, found 'add':
/// <line>".
class ParseError : public std::runtime_error {
public:
    ParseError(const std::string& message, Location location) : std::runtime_error(message), location_(location) {}
    [[nodiscard]] Location location() const noexcept { return location_; }

private:
    Location location_;
};

/// Parses one PTX module: the syntax, not what names and opcodes mean. Takes time and memory in proportion to the text,
/// whatever it holds, and does not recurse deeper than a few hundred calls.
/// Trailing zero bytes are ignored, as fat binaries pad with them. Debug sections, pragmas and tuning hints that have
/// no place in the tree are read over.
/// @throws ParseError with the line and its text.
[[nodiscard]] Module parse(std::string_view text);

}  // namespace tessera::emulator::ptx
