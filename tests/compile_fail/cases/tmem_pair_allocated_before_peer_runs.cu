// A pair's allocation needs the peer, which may not have started.
// expect: "a pair allocates together: it takes a ClusterArrived, the proof that the peer runs"
#include "tessera/device/tmem.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ TmemSlot slot;
    const bool first_warp = threadIdx.x < 32;
#ifdef NEGATIVE
    auto memory = Tmem<Unallocated, 128, CtaGroup::pair>(slot).allocate(first_warp);
#else
    auto memory = Tmem<Unallocated, 128, CtaGroup::pair>(slot).allocate(first_warp, ClusterGrid::synchronize());
#endif
    const PairFinished finished = memory.finish_pair();
    std::move(memory).release(first_warp, finished);
}
