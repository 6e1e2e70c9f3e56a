#pragma once

// Initial values of .global and .const variables (PTX ISA "Initializers").

#include "ptx/token_cursor.hpp"

namespace tessera::emulator::ptx {

/// Parses what follows '='. Sets variable.initial, and the extent of [] from the number of values. Only the last row of
/// an array may be incomplete. Settings of textures, samplers and surfaces are skipped.
/// @throws ParseError also if a value does not fit the type or there are too many
void parse_initial_values(TokenCursor& cursor, Variable& variable);

}  // namespace tessera::emulator::ptx
