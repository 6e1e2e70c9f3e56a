// The fill kernel takes its value as a kernel argument of at most 256 bytes.
// expect: "elements of a DeviceBuffer have at most 256 bytes"
#include <array>

#include "tessera/device_buffer.hpp"

#ifdef NEGATIVE
using Element = std::array<char, 257>;
#else
using Element = std::array<char, 256>;
#endif

std::size_t count(const tessera::DeviceBuffer<Element>& buffer) { return buffer.size(); }
