#pragma once

namespace tessera::emulator {

/// The address of the driver function `name`, with or without its version suffix ("cuMemAlloc" and "cuMemAlloc_v2" are
/// the same); null if it is not emulated.
[[nodiscard]] void* find_driver_function(const char* name);

}  // namespace tessera::emulator
