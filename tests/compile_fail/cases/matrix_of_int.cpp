// No kernel multiplies integers, and a view of them must not pass for one of floats of the same size.
// expect: "a matrix has elements of type f32, f16, bf16, tf32, f8e4m3 or f8e5m2 (or const ones)"
#include "tessera/device_buffer.hpp"

#ifdef NEGATIVE
using Element = int;
#else
using Element = float;
#endif

std::int64_t rows(tessera::DeviceBuffer<Element>& buffer) { return buffer.matrix(2, 3).rows(); }
