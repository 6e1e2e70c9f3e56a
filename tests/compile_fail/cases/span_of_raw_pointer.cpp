// A raw pointer does not say where its memory is, so the conversion has a name that can be searched for.
// expect g++: "no matching function for call to 'tessera::DeviceSpan<float>::DeviceSpan("
// expect clang++: "no matching constructor for initialization of 'DeviceSpan<float>'"
#include "tessera/device_span.hpp"

using namespace tessera;

DeviceSpan<float> wrap(float* data, std::size_t size)
{
#ifdef NEGATIVE
    return DeviceSpan<float>(data, size);
#else
    return DeviceSpan<float>::from_raw_device_pointer(data, size);
#endif
}
