#pragma once

// Linking of relocatable device code (nvcc -rdc=true): the PTX of several translation units as one module.

#include <span>
#include <string>

namespace tessera::emulator {

/// One text with the definitions of all `units`, in which what one unit declares ".extern" is what another one defines.
/// Names without linkage that two units share are made different; weak definitions are taken once. What no unit defines
/// stays external (vprintf and the like).
[[nodiscard]] std::string link_ptx(std::span<const std::string> units);

}  // namespace tessera::emulator
