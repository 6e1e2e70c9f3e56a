// A bias is added to fp32 sums; an 8-bit vector would have another scale.
// expect: "tessera: a bias has elements of f32, f16 or bf16"
#include "tessera/gemm.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Element = f8e5m2;
#else
using Element = f16;
#endif

Bias bias_of(DeviceSpan<const Element> values) { return Bias::per_column(values); }
