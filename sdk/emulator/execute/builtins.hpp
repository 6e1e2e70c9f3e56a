#pragma once

// Functions that device code calls and the machine provides: printf, assert, the device heap.

#include <string_view>

#include "program/operation.hpp"

namespace tessera::emulator {

/// Executes a call of the function `name` whose payload is a CallPayload; null if the machine has no such function.
[[nodiscard]] Execute builtin_function(std::string_view name) noexcept;

}  // namespace tessera::emulator
