#pragma once

// From PTX text to ptx::Module.

#include <stdexcept>
#include <string>
#include <string_view>

#include "ptx/ast.hpp"

namespace tessera::emulator::ptx {

/// The text is not PTX that this parser accepts. what(): "PTX line 12: expected ';' after the operands, found 'add':
/// <line>".
class ParseError : public std::runtime_error {
public:
    ParseError(const std::string& message, Location location) : std::runtime_error(message), location_(location) {}
    [[nodiscard]] Location location() const noexcept { return location_; }

private:
    Location location_;
};

/// Parses the syntax of one PTX module; names and opcodes are not interpreted. Time and memory are proportional to the
/// text, whatever its contents, and recursion is limited to a few hundred calls. Trailing zero bytes are ignored,
/// because fat binaries pad with them. Debug sections, pragmas and tuning hints that the tree does not store are
/// skipped.
/// @throws ParseError with the line and its text
[[nodiscard]] Module parse(std::string_view text);

}  // namespace tessera::emulator::ptx
