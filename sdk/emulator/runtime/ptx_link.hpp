#pragma once

// Linking of relocatable device code (nvcc -rdc=true): the PTX of several translation units as one module.

#include <span>
#include <string>

namespace tessera::emulator {

/// One text with the definitions of all `units`. A name that one unit declares ".extern" refers to the definition in
/// another unit. Names without linkage that two units share are made distinct; weak definitions are used once. Names
/// that no unit defines stay external (vprintf and the like).
[[nodiscard]] std::string link_ptx(std::span<const std::string> units);

}  // namespace tessera::emulator
