// A DisjointSpan exists to be written.
// expect: "DisjointSpan<T> is for writing: use DeviceSpan<const T> to read"
#include "tessera/device/disjoint_span.cuh"

#ifdef NEGATIVE
using Element = const float;
#else
using Element = float;
#endif

std::size_t count(const tessera::DisjointSpan<Element>& span) { return span.size(); }
