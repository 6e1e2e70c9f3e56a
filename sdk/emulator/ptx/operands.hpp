#pragma once

// Operands of instructions (PTX ISA "Instruction Operands").

#include <vector>

#include "ptx/token_cursor.hpp"

namespace tessera::emulator::ptx {

/// One operand of any kind except a list in parentheses.
/// @throws ParseError
[[nodiscard]] Operand parse_operand(TokenCursor& cursor);

/// Everything between an opcode and its ';', which remains.
/// @param is_call lists in parentheses are those of a call: vectors, possibly empty
/// @throws ParseError
[[nodiscard]] std::vector<Operand> parse_operands(TokenCursor& cursor, bool is_call);

}  // namespace tessera::emulator::ptx
