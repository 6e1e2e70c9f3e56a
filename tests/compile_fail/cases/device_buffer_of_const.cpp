// A buffer owns its memory and fills it; what is const is the view that others get of it.
// expect: "DeviceBuffer<T> owns writable memory: write DeviceBuffer<T>, not <const T>"
#include "tessera/device_buffer.hpp"

#ifdef NEGATIVE
using Element = const float;
#else
using Element = float;
#endif

std::size_t count(const tessera::DeviceBuffer<Element>& buffer) { return buffer.size(); }
