// A copy would hide an allocation and a transfer. Memory has one owner; copies are explicit.
// expect g++: "use of deleted function 'tessera::DeviceBuffer<T>::DeviceBuffer(const tessera::DeviceBuffer<T>&)"
// expect clang++: "call to deleted constructor of 'DeviceBuffer<float>'"
#include "tessera/device_buffer.hpp"

using namespace tessera;

DeviceBuffer<float> handed_on(DeviceBuffer<float>& buffer)
{
#ifdef NEGATIVE
    return buffer;
#else
    return std::move(buffer);
#endif
}
