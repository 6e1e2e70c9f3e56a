// A const buffer gives views of const elements; the product would be written through them.
// expect: "the output D is a view of const elements and cannot be written"
#include "tessera/device_buffer.hpp"
#include "tessera/gemm.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Output = const DeviceBuffer<f32>;
#else
using Output = DeviceBuffer<f32>;
#endif

void multiply(StreamRef stream, const DeviceBuffer<f32>& a, const DeviceBuffer<f32>& b, Output& d)
{
    Gemm::launch(stream, a.matrix(4, 4), b.matrix(4, 4), d.matrix(4, 4));
}
