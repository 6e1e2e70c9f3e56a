// Driver functions that are known but not emulated. No CUDA header may be included here, because the definitions have other
// signatures; for a function that only returns an int, the ABI allows it. Compiled twice, as driver_calls.cpp.

#include "runtime/not_emulated.hpp"

#define TESSERA_DRIVER_SYMBOL(name) \
    extern "C" int name() { return tessera_emulator_not_emulated(#name); }
#include "runtime/driver_not_emulated.def"
#undef TESSERA_DRIVER_SYMBOL
