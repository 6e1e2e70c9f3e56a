// A pair's allocation needs the peer, which may not have started.
// expect: "a pair allocates together: it takes the token of publish_barriers_to_cluster(), the proof"
#include "tessera/device/tmem.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ TmemSlot slot;
    const bool first_warp = threadIdx.x < 32;
    [[maybe_unused]] const auto published = publish_barriers_to_cluster([](const BarrierInitializer&) {});
#ifdef NEGATIVE
    auto memory = Tmem<Unallocated, 128, CtaGroup::pair>(slot).allocate(first_warp);
#else
    auto memory = Tmem<Unallocated, 128, CtaGroup::pair>(slot).allocate(first_warp, published);
#endif
    const PairFinished finished = memory.finish_pair();
    std::move(memory).release(first_warp, finished);
}
