// A bias has an output's element types.
// expect g++: "no matching function for call to 'tessera::Bias::per_row("
// expect clang++: "no matching function for call to 'per_row'"
#include "tessera/gemm.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Element = double;
#else
using Element = float;
#endif

Bias bias_of(DeviceSpan<const Element> values) { return Bias::per_row(values); }
