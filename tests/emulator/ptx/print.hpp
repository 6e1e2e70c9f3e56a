#pragma once

// A module's tree printed as PTX text in one spelling, so that trees can be compared and printed text parsed again.

#include <string>

#include "ptx/ast.hpp"

namespace tessera::emulator::ptx {

/// The whole tree except locations and the statements' own text. Variables come before functions.
[[nodiscard]] std::string print(const Module& module);
[[nodiscard]] std::string print(const Instruction& instruction);
[[nodiscard]] std::string print(const Operand& operand);
[[nodiscard]] std::string print(const Variable& variable);

}  // namespace tessera::emulator::ptx
