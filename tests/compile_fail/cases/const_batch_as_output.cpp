// The same for a batch, and through a plan.
// expect: "the output D is a view of const elements and cannot be written"
#include "tessera/device_buffer.hpp"
#include "tessera/gemm.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Output = const DeviceBuffer<f32>;
#else
using Output = DeviceBuffer<f32>;
#endif

void multiply(const GemmPlan& plan, StreamRef stream, const DeviceBuffer<f32>& a, Output& d)
{
    const auto inputs = a.span().matrices(2, 16, 4, 4, 4);
    plan.launch(stream, inputs, inputs, d.span().matrices(2, 16, 4, 4, 4));
}
