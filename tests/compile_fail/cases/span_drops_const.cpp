// A writable span converts to const, but not back.
// expect g++: "could not convert 'values' from 'DeviceSpan<const float>' to 'DeviceSpan<float>'"
// expect clang++: "no viable conversion from returned value of type 'DeviceSpan<const float>' to function return type"
#include "tessera/device_span.hpp"

using namespace tessera;

#ifdef NEGATIVE
DeviceSpan<float> converted(DeviceSpan<const float> values) { return values; }
#else
DeviceSpan<const float> converted(DeviceSpan<float> values) { return values; }
#endif
