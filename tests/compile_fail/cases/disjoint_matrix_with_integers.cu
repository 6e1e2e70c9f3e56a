// Integers do not prove that the element is the thread's own.
// expect: "tessera: a DisjointMatrix is written with a ThreadIndex2D (the thread's own element), not with integers"
#include "tessera/device/disjoint_span.cuh"

using namespace tessera;

__global__ void clear(DisjointMatrix<float> values)
{
    const auto index = ThreadIndex2D::in_grid();
    if (values.contains(index)) {
#ifdef NEGATIVE
        values(threadIdx.y, threadIdx.x) = 0;
#else
        values[index] = 0;
#endif
    }
}
