// The peer may still use the columns, or may not have allocated its own yet.
// expect: "a pair's tensor memory is released with a PairFinished"
#include "tessera/device/tmem.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ TmemSlot slot;
    const bool first_warp = threadIdx.x < 32;
    const auto published = publish_barriers_to_cluster([](const BarrierInitializer&) {});
    auto memory = Tmem<Unallocated, 128, CtaGroup::pair>(slot).allocate(first_warp, published);
#ifdef NEGATIVE
    std::move(memory).release(first_warp);
#else
    const PairFinished finished = memory.finish_pair();
    std::move(memory).release(first_warp, finished);
#endif
}
