// Mistakes that the compiler accepts and the linter must find: a handle is used after it was moved into its next state.
// .ci/lint_device compares its findings with the marks below.

#include <utility>

#include "tessera/device/accumulator.cuh"
#include "tessera/device/clc.cuh"
#include "tessera/device/pipeline.cuh"
#include "tessera/device/tmem.cuh"

using namespace tessera;

using Stages = RingBarriers<FilledByTma, FreedByThreads, 4>;

__global__ void reads_released_tensor_memory(float* out)
{
    __shared__ TmemSlot slot;
    auto memory = Tmem<Unallocated, 128, CtaGroup::one>(slot).allocate(threadIdx.x < 32);
    std::move(memory).release(threadIdx.x < 32);
    out[threadIdx.x] = float(memory.accumulator<128>(0).address());  // expect: bugprone-use-after-move
}

__global__ void releases_tensor_memory_twice()
{
    __shared__ TmemSlot slot;
    auto memory = Tmem<Unallocated, 128, CtaGroup::one>(slot).allocate(threadIdx.x < 32);
    std::move(memory).release(threadIdx.x < 32);
    std::move(memory).release(threadIdx.x < 32);  // expect: bugprone-use-after-move
}

__global__ void fills_a_published_slot()
{
    __shared__ Stages ring;
    RingProducer<Stages> producer(ring, publish_barriers([&](const BarrierInitializer& by) {
                                      ring.initialize(by, {.producers = 1, .consumers = 1});
                                  }));
    auto slot = producer.acquire(16);
    std::move(slot).publish();
    slot.announce(16);  // expect: bugprone-use-after-move
}

__global__ void reads_a_released_slot(unsigned* out)
{
    __shared__ Stages ring;
    RingConsumer<Stages> consumer(ring, publish_barriers([&](const BarrierInitializer& by) {
                                      ring.initialize(by, {.producers = 1, .consumers = 1});
                                  }));
    auto slot = consumer.wait();
    std::move(slot).release();
    *out = slot.index();  // expect: bugprone-use-after-move
}

__global__ void reads_a_released_accumulator(float* out)
{
    using Accumulators = RingBarriers<AccumulatorFull, AccumulatorEmpty, 1>;
    __shared__ Accumulators ring;
    __shared__ TmemSlot slot;
    auto memory = Tmem<Unallocated, 128, CtaGroup::one>(slot).allocate(threadIdx.x < 32);
    const auto published =
        publish_barriers([&](const BarrierInitializer& by) { ring.initialize(by, {.producers = 1, .consumers = 1}); });
    auto accumulator = read_accumulators<128>(ring, published, memory).wait();
    std::move(accumulator).release();
    out[threadIdx.x] = accumulator.load_rows<16>(0, 0).wait()[0];  // expect: bugprone-use-after-move
    std::move(memory).release(threadIdx.x < 32);
}

__device__ void take(WorkItem&& item);

__global__ void computes_work_that_was_given_away(unsigned* out)
{
    SingleWorkQueue queue;
    WorkItem work = queue.first();
    WorkItem given = std::move(work);
    *out = work.index() + given.index();  // expect: bugprone-use-after-move
}

__global__ void computes_work_that_a_call_took(unsigned* out)
{
    SingleWorkQueue queue;
    WorkItem work = queue.first();
    take(std::move(work));
    *out = work.index();  // expect: bugprone-use-after-move
}
