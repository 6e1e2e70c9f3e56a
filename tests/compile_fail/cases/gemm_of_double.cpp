// No kernel multiplies double.
// expect: "a matrix has elements of type f32, f16, bf16, tf32, f8e4m3 or f8e5m2 (or const ones)"
#include "tessera/device_buffer.hpp"
#include "tessera/gemm.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Element = double;
#else
using Element = float;
#endif

void multiply(StreamRef stream, const DeviceBuffer<Element>& a, const DeviceBuffer<Element>& b,
              DeviceBuffer<Element>& d)
{
    Gemm::launch(stream, a.matrix(4, 4), b.matrix(4, 4), d.matrix(4, 4));
}
