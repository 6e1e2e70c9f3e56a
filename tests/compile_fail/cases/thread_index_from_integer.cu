// Only the thread's own position in the grid makes an index.
// expect: ""tessera::ThreadIndex::ThreadIndex(std::size_t)""
#include "tessera/device/disjoint_span.cuh"

using namespace tessera;

__global__ void clear(DisjointSpan<float> values)
{
#ifdef NEGATIVE
    const ThreadIndex index(0);
#else
    const auto index = ThreadIndex::in_grid();
#endif
    if (values.contains(index)) {
        values[index] = 0;
    }
}
