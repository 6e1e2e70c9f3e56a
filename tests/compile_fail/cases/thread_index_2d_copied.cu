// A copy could be changed, or handed to another thread, and then name another thread's element.
// expect: "function "tessera::ThreadIndex2D::ThreadIndex2D(const tessera::ThreadIndex2D &)""
#include "tessera/device/disjoint_span.cuh"

using namespace tessera;

__global__ void clear(DisjointMatrix<float> values)
{
    const auto index = ThreadIndex2D::in_grid();
#ifdef NEGATIVE
    const auto own = index;
#else
    const auto& own = index;
#endif
    if (values.contains(own)) {
        values[own] = 0;
    }
}
