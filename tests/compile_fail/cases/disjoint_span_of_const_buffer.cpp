// A const buffer cannot be written through a span.
// expect g++: "class template argument deduction failed"
// expect clang++: "no viable constructor or deduction guide for deduction of template arguments of 'DisjointSpan'"
#include "tessera/device/disjoint_span.cuh"
#include "tessera/device_buffer.hpp"

#ifdef NEGATIVE
using Buffer = const tessera::DeviceBuffer<float>;
#else
using Buffer = tessera::DeviceBuffer<float>;
#endif

std::size_t count(Buffer& buffer) { return tessera::DisjointSpan(buffer).size(); }
