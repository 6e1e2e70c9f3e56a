// Threads would arrive at a barrier that the tensor core completes.
// expect: "no instance of constructor "tessera::Barrier<Kind>::Barrier"
#include "tessera/device/barrier.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Word = BarrierWord<FreedByTensorCore>;
#else
using Word = BarrierWord<FreedByThreads>;
#endif

__device__ void arrive(Word& word, BarriersPublished published) { Barrier<FreedByThreads>(word, published).arrive(); }
