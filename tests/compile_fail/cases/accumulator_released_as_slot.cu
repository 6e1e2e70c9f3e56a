// The tensor core would overwrite columns that are still being loaded.
// expect: "an accumulator is waited for and released through read_accumulators()"
#include "tessera/device/pipeline.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Ring = RingBarriers<AccumulatorFull, AccumulatorEmpty, 2>;
#else
using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;
#endif

__device__ void read(RingConsumer<Ring>& consumer) { consumer.wait().release(); }
