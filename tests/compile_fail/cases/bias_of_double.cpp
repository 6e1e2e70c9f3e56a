// A bias has an output's element types.
// expect: "tessera: a bias has elements of f32, f16 or bf16"
#include "tessera/gemm.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Element = double;
#else
using Element = float;
#endif

Bias bias_of(DeviceSpan<const Element> values) { return Bias::per_row(values); }
