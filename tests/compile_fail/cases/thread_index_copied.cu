// A copy could be advanced, or handed to another thread, and then name another thread's element.
// expect: "function "tessera::ThreadIndex::ThreadIndex(const tessera::ThreadIndex &)""
#include "tessera/device/disjoint_span.cuh"

using namespace tessera;

__global__ void clear(DisjointSpan<float> values)
{
    const auto index = ThreadIndex::in_grid();
#ifdef NEGATIVE
    const auto own = index;
#else
    const auto& own = index;
#endif
    if (values.contains(own)) {
        values[own] = 0;
    }
}
