#pragma once

// Vector registers (.reg .v2 .f32 v) become scalar ones, so that everything after this knows scalars only.

#include "ptx/ast.hpp"

namespace tessera::emulator {

/// Replaces `.reg .v2 .f32 v;` by registers `v.x` and `v.y` (names that PTX cannot declare), the operand `v` by
/// `{v.x, v.y}`, and the member v.x, or v.r, by the register `v.x`. Declarations that PTX does not allow are left, to be
/// refused where they are lowered.
void expand_vector_registers(ptx::Block& body);

}  // namespace tessera::emulator
