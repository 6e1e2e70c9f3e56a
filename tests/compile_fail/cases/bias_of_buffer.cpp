// A buffer converts to a span, but template argument deduction does not use conversions.
// expect: "tessera: a bias runs along rows or columns: pass Bias::per_column(buffer.span()) for one element per column of D, or Bias::per_row(...)"
#include "tessera/device_buffer.hpp"
#include "tessera/gemm.hpp"

using namespace tessera;

#ifdef NEGATIVE
Bias bias_of(const DeviceBuffer<f32>& values) { return Bias::per_row(values); }
#else
Bias bias_of(const DeviceBuffer<f32>& values) { return Bias::per_row(values.span()); }
#endif
