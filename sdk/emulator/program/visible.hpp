#pragma once

// Where it may matter who runs next.

#include "base/statistics.hpp"
#include "ptx/ast.hpp"

namespace tessera::emulator {

/// Returns true if another warp or asynchronous work may notice when this instruction is executed, or the instruction may
/// notice them: synchronization, atomic and strong accesses, and what issues asynchronous work. Ordinary accesses are not:
/// if they are unordered with others, this is a race that is found in every order.
[[nodiscard]] bool is_visible(const ptx::Instruction& instruction, InstructionClass kind);

}  // namespace tessera::emulator
