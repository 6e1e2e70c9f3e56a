#pragma once

#include <string_view>

namespace tessera::emulator {

/// The address of the driver function `name` as a program of CUDA `version` (13000 for 13.0) expects it, with or without
/// its version suffix ("cuMemAlloc" and "cuMemAlloc_v2" are the same); null if there is none.
[[nodiscard]] void* find_driver_function(std::string_view name, int version);

}  // namespace tessera::emulator
