#pragma once

// The body of a function: instructions, labels, declarations and nested scopes.

#include "ptx/token_cursor.hpp"

namespace tessera::emulator::ptx {

/// From '{', the current token, to its '}'.
/// @throws ParseError
[[nodiscard]] Block parse_block(TokenCursor& cursor);

/// The rest of `.loc file line column [, function_name label] [, inlined_at file line column]`: the cursor is after
/// `.loc`. Sets the source line of the following statements.
/// @throws ParseError
void parse_loc(TokenCursor& cursor);

/// The rest of `.pragma "a", "b";`. Pragmas are optimizer hints, so nothing is stored.
/// @throws ParseError
void parse_pragma(TokenCursor& cursor);

}  // namespace tessera::emulator::ptx
