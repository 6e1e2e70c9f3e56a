// An integer does not prove that the element is the thread's own: two threads could write one element.
// expect: "a DisjointSpan is written with a ThreadIndex (the thread's own element), not with an integer"
#include "tessera/device/disjoint_span.cuh"

using namespace tessera;

__global__ void clear(DisjointSpan<float> values)
{
    const auto index = ThreadIndex::in_grid();
    if (values.contains(index)) {
#ifdef NEGATIVE
        values[threadIdx.x] = 0;
#else
        values[index] = 0;
#endif
    }
}
