// Threads complete that barrier; a commit of the tensor core would be one arrival too many.
// expect: "the tensor core commits to a barrier that is FreedByTensorCore or AccumulatorFull"
#include "tessera/device/mma.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Kind = AccumulatorEmpty;
#else
using Kind = AccumulatorFull;
#endif

__global__ void kernel()
{
    __shared__ BarrierWord word;
    const Barrier<Kind, Ready> barrier(word, publish_barriers());
    commit<CtaGroup::one>(barrier);
}
