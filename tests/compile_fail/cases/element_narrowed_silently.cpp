// f16 overflows at 65520 and keeps three digits, so rounding to it is explicit.
// expect g++: "could not convert 'value' from 'float' to 'tessera::f16'"
// expect clang++: "no viable conversion from returned value of type 'float' to function return type"
#include "tessera/element.hpp"

using namespace tessera;

#ifdef NEGATIVE
f16 narrowed(float value) { return value; }
#else
f16 narrowed(float value) { return f16(value); }
#endif
