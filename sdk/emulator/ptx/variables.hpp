#pragma once

// Declarations of variables, registers and parameters (PTX ISA "State Spaces, Types, and Variables").

#include <optional>
#include <string_view>
#include <vector>

#include "ptx/token_cursor.hpp"

namespace tessera::emulator::ptx {

/// Directives before a declaration.
struct Linkage {
    bool external = false, visible = false, weak = false, common = false;
};

/// The state space that a declaration with this directive declares in; nothing if it is no such directive.
[[nodiscard]] std::optional<StateSpace> declared_space(std::string_view directive) noexcept;

/// From the state space, the current token, to the ';': at least one variable.
/// @throws ParseError
[[nodiscard]] std::vector<Variable> parse_variables(TokenCursor& cursor, const Linkage& linkage);

/// `( .param .b32 a, ... )`, empty as well; the cursor is at '('.
/// @throws ParseError
[[nodiscard]] std::vector<Variable> parse_parameters(TokenCursor& cursor);

/// What `.attribute(...)` says, as far as the tree has a place for it.
struct Attributes {
    bool managed = false;
};
/// The cursor is after `.attribute`.
/// @throws ParseError for an attribute that PTX does not have
[[nodiscard]] Attributes parse_attributes(TokenCursor& cursor);

}  // namespace tessera::emulator::ptx
