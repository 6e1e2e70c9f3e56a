#pragma once

// Constant expressions of operands and initial values (PTX ISA "Constant Expressions").

#include <cstdint>

#include "ptx/token_cursor.hpp"

namespace tessera::emulator::ptx {

/// The value of a constant expression. Integers have 64 bits, signed or unsigned.
struct Constant {
    enum class Kind : std::uint8_t { signed_integer, unsigned_integer, real };
    Kind kind = Kind::signed_integer;
    Type real_type = Type::none;  ///< of a real: f32 if it is a 0f literal, otherwise f64
    std::uint64_t bits = 0;       ///< of the integer, or of the real in `real_type`

    [[nodiscard]] bool is_real() const noexcept { return kind == Kind::real; }
    /// The value of a real constant.
    [[nodiscard]] double real() const noexcept;
};

/// True if the current token can begin a constant: a number, WARP_SZ, a sign or a parenthesis.
[[nodiscard]] bool at_constant(const TokenCursor& cursor) noexcept;

/// A whole expression, including the conditional operator.
/// @throws ParseError
[[nodiscard]] Constant parse_constant(TokenCursor& cursor);

/// The sum of the terms after a name, as in `name+4*2-8`; 0 if neither '+' nor '-' follows.
/// @throws ParseError
[[nodiscard]] std::int64_t parse_offset(TokenCursor& cursor);

}  // namespace tessera::emulator::ptx
