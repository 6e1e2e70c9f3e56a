// A buffer owns memory and fills it; const belongs to the views of it.
// expect: "DeviceBuffer<T> owns writable memory: write DeviceBuffer<T>, not <const T>"
#include "tessera/device_buffer.hpp"

#ifdef NEGATIVE
using Element = const float;
#else
using Element = float;
#endif

std::size_t count(const tessera::DeviceBuffer<Element>& buffer) { return buffer.size(); }
