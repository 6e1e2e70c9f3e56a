// Every function of the toolkit's library has a definition here that says that it is not emulated. They are weak: where
// another file of this library defines a function, that definition is taken. No CUDA header may be included here,
// because the definitions have other signatures; for a function that only returns an int, the ABI does not care.

#include "runtime/not_emulated.hpp"

#define TESSERA_CUDART_SYMBOL(name) \
    extern "C" __attribute__((weak)) int name() { return tessera::emulator::not_emulated(#name); }
#include "runtime/symbols.def"
#undef TESSERA_CUDART_SYMBOL
