// Every function of the toolkit's driver library has a weak definition here that reports that it is not emulated, so that
// a program that links the driver starts whatever it refers to. A definition in another file of this library replaces it.
// No CUDA header may be included here, because the definitions have other signatures; for a function that only returns an
// int, the ABI allows it. Compiled twice, as driver_calls.cpp.

#include "runtime/not_emulated.hpp"

#define TESSERA_DRIVER_SYMBOL(name) \
    extern "C" __attribute__((weak)) int name() { return tessera_emulator_not_emulated(#name); }
#include "runtime/driver_toolkit_symbols.def"
#undef TESSERA_DRIVER_SYMBOL
