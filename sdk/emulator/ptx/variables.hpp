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

/// The state space of declarations that begin with this directive; nothing if it does not begin a declaration.
[[nodiscard]] std::optional<StateSpace> declared_space(std::string_view directive) noexcept;

/// From the state space, the current token, to the ';': at least one variable.
/// @throws ParseError
[[nodiscard]] std::vector<Variable> parse_variables(TokenCursor& cursor, const Linkage& linkage);

/// `( .param .b32 a, ... )`, empty as well; the cursor is at '('.
/// @throws ParseError
[[nodiscard]] std::vector<Variable> parse_parameters(TokenCursor& cursor);

/// The contents of `.attribute(...)`, as far as the tree stores them.
struct Attributes {
    bool managed = false;
};
/// The cursor is after `.attribute`.
/// @throws ParseError for an attribute that PTX does not have
[[nodiscard]] Attributes parse_attributes(TokenCursor& cursor);

}  // namespace tessera::emulator::ptx
