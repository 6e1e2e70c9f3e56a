// CUDA's own launch takes void*: an argument of the wrong type would be read as garbage.
// expect: "the second argument of launch does not have the type of the kernel's parameter"
#include "tessera/device_span.hpp"
#include "tessera/launch.hpp"

using namespace tessera;

void scale(float factor, DeviceSpan<float> values);  // stands for a kernel: only its signature is looked at

#ifdef NEGATIVE
using Argument = DeviceSpan<double>;
#else
using Argument = DeviceSpan<float>;
#endif

void run(StreamRef stream, Argument values)
{
    launch(scale, LaunchConfig::covering(stream, values.size()), 2.0F, values);
}
