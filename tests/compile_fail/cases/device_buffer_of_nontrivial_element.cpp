// A std::string is a pointer to host memory: its bytes mean nothing on the device.
// expect: "DeviceBuffer<T> copies bytes between host and device, so T must be trivially copyable"
#include <array>
#include <string>

#include "tessera/device_buffer.hpp"

#ifdef NEGATIVE
using Element = std::string;
#else
using Element = std::array<char, 16>;
#endif

std::size_t count(const tessera::DeviceBuffer<Element>& buffer) { return buffer.size(); }
