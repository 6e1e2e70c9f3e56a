// Every function of the toolkit's library has a weak definition here that reports that it is not emulated. A definition
// in another file of this library replaces it. No CUDA header may be included here, because the definitions have other
// signatures; for a function that only returns an int, the ABI allows it.

#include "runtime/not_emulated.hpp"

#define TESSERA_CUDART_SYMBOL(name) \
    extern "C" __attribute__((weak)) int name() { return tessera::emulator::not_emulated(#name); }
#include "runtime/symbols.def"
#undef TESSERA_CUDART_SYMBOL
