// Only a slot knows when its barrier may be used.
// expect: "is inaccessible"
#include "tessera/device/pipeline.cuh"

using namespace tessera;

using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;

__device__ void free(Ring& ring, BarriersPublished published)
{
#ifdef NEGATIVE
    Barrier(ring.empty_[0], published).arrive();
#else
    RingConsumer(ring, published).wait().release();
#endif
}
