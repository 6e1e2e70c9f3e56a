#pragma once

// Functions that device code calls and the machine provides: printf, assert, the device heap.

#include <cstddef>
#include <optional>
#include <string_view>

#include "program/effects.hpp"
#include "program/operation.hpp"

namespace tessera::emulator {

struct BuiltinFunction {
    std::string_view name;
    Execute execute;        ///< for an operation whose payload is a CallPayload
    std::size_t arguments;  ///< that it reads
    std::optional<MemoryEffect> memory{};
    bool meets_clusters = false;  ///< see Effects
    bool prints = false;
    bool uses_heap = false;
};

/// Null if the machine has no such function.
[[nodiscard]] const BuiltinFunction* builtin_function(std::string_view name) noexcept;

}  // namespace tessera::emulator
