#pragma once

// No CUDA headers here: not_emulated.cpp defines their functions with other signatures.

namespace tessera::emulator {

/// Reports that the API function `name` is not emulated, once; gives cudaErrorNotSupported.
int not_emulated(const char* name) noexcept;

}  // namespace tessera::emulator
