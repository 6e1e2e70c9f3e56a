// The tensor core may still be adding to it.
// expect: "an accumulator is read from its wait to its release: read_accumulators()"
#include "tessera/device/accumulator.cuh"

using namespace tessera;

using Accumulators = RingBarriers<AccumulatorFull, AccumulatorEmpty, 1>;

__global__ void kernel(float* out)
{
    __shared__ Accumulators ring;
    __shared__ TmemSlot slot;
    const auto published =
        publish_barriers([&](const BarrierInitializer& by) { ring.initialize(by, {.producers = 1, .consumers = 1}); });
    auto memory = Tmem<Unallocated, 128, CtaGroup::one>(slot).allocate(threadIdx.x < 32);
#ifdef NEGATIVE
    memory.accumulator<128>(0).load_rows<16>(0, 0);
#endif
    auto accumulator = read_accumulators<128>(ring, published, memory).wait();
    out[threadIdx.x] = accumulator.load_rows<16>(0, 0).wait()[0];
    std::move(accumulator).release();
    std::move(memory).release(threadIdx.x < 32);
}
