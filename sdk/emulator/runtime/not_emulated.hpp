#pragma once

// No CUDA headers here: not_emulated.cpp defines their functions with other signatures.

namespace tessera::emulator {

/// Reports once that the API function `name` is not emulated; returns cudaErrorNotSupported.
int not_emulated(const char* name) noexcept;

}  // namespace tessera::emulator

/// The same for a driver function: the runtime's last error stays as it is.
extern "C" int tessera_emulator_not_emulated(const char* name);
