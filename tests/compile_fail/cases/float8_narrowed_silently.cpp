// f8e4m3 saturates at 448 and keeps one digit, so rounding to it is explicit.
// expect g++: "could not convert 'value' from 'float' to 'tessera::f8e4m3'"
// expect clang++: "no viable conversion from returned value of type 'float' to function return type"
#include "tessera/element.hpp"

using namespace tessera;

#ifdef NEGATIVE
f8e4m3 narrowed(float value) { return value; }
#else
f8e4m3 narrowed(float value) { return f8e4m3(value); }
#endif
