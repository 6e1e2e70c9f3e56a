#pragma once

// Handlers of the most frequent memory accesses.

#include "machine/memory_access.hpp"
#include "program/operation.hpp"

namespace tessera::emulator {

/// By set; null: there is none for such an access.
struct FastHandlers {
    Execute checked = nullptr, unchecked = nullptr, compared = nullptr;
};

/// For weak loads and stores of elements that are as wide as their registers.
[[nodiscard]] FastHandlers fast_access(Space space, unsigned element_bytes, bool loads);
/// For ld.param of a kernel's parameter.
[[nodiscard]] FastHandlers fast_parameter_load(unsigned element_bytes, unsigned register_bytes, bool extends_sign);

}  // namespace tessera::emulator
