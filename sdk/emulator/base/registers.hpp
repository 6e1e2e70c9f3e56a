#pragma once

// Where a register's values are.

#include <cstdint>

namespace tessera::emulator {

/// The place of an operand's row. A row holds one value for each lane. Bits 30-31 select the block (0 the frame's
/// registers, 1 the program's constants, 2 the warp's own constants such as %tid), the other bits are the offset in
/// bytes. A row of a type of n bytes has 32*n bytes; a predicate's row is one LaneMask.
using Ref = std::uint32_t;
inline constexpr Ref no_row = 0xFFFFFFFF;
inline constexpr Ref in_constants = 1u << 30;
inline constexpr Ref in_warp = 2u << 30;

}  // namespace tessera::emulator
