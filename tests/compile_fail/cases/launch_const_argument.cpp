// The kernel would write to memory that the caller declared const.
// expect: "the first argument of launch does not have the type of the kernel's parameter"
#include "tessera/device_span.hpp"
#include "tessera/launch.hpp"

using namespace tessera;

#ifdef NEGATIVE
void sum(DeviceSpan<float> values);
#else
void sum(DeviceSpan<const float> values);
#endif

void run(StreamRef stream, DeviceSpan<const float> values) { launch(sum, LaunchConfig(stream, {1}, {32}), values); }
