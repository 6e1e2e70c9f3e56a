// CUDA's own launch cannot count: it would read past the end of the array of arguments.
// expect: "launch needs as many arguments as the kernel has parameters"
#include "tessera/device_span.hpp"
#include "tessera/launch.hpp"

using namespace tessera;

void scale(DeviceSpan<float> values, float factor);

void run(StreamRef stream, DeviceSpan<float> values)
{
    const auto config = LaunchConfig::covering(stream, values.size());
#ifdef NEGATIVE
    launch(scale, config, values);
#else
    launch(scale, config, values, 2.0F);
#endif
}
