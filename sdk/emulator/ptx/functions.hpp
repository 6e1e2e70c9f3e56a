#pragma once

// Functions and kernels (PTX ISA "Kernel and Function Directives", "Performance-Tuning Directives").

#include "ptx/token_cursor.hpp"
#include "ptx/variables.hpp"

namespace tessera::emulator::ptx {

/// From `.entry` or `.func`, the current token, to the end of the body or the ';' of a declaration.
/// @throws ParseError
[[nodiscard]] Function parse_function(TokenCursor& cursor, const Linkage& linkage);

/// `(results) name (parameters)` and the directives that follow, up to '{' or ';'. Only the name is required.
/// @throws ParseError
void parse_prototype(TokenCursor& cursor, Function& function);

}  // namespace tessera::emulator::ptx
