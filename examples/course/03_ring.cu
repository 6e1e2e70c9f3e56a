// Chapter 3: a ring of stages. One warp loads ahead, eight multiply.
#include <tessera/device/tma.cuh>

#include "course/course.hpp"

using namespace tessera;

constexpr unsigned tile = 64;
using OperandMap = TensorMap<bf16, Box<tile, tile>, Swizzle::b128>;
using OperandTile = SharedTile<bf16, Box<tile, tile>, Swizzle::b128>;

constexpr unsigned side = 4;  // a thread computes (4, 4) elements of D

__device__ void multiply(float (&sums)[side][side], const OperandTile& a, const OperandTile& b)
{
    const unsigned x = threadIdx.x % 16, y = threadIdx.x / 16;
    for (unsigned l = 0; l < tile; ++l) {
        for (unsigned i = 0; i < side; ++i) {
            for (unsigned j = 0; j < side; ++j) {
                sums[i][j] += float(a(y + 16 * i, l)) * float(b(x + 16 * j, l));
            }
        }
    }
}

__device__ void store(MatrixView<float> d, unsigned row, unsigned column, const float (&sums)[side][side])
{
    const unsigned x = threadIdx.x % 16, y = threadIdx.x / 16;
    for (unsigned i = 0; i < side; ++i) {
        for (unsigned j = 0; j < side; ++j) {
            d(row + y + 16 * i, column + x + 16 * j) = sums[i][j];
        }
    }
}

// [storage]
constexpr unsigned stages = 3;
constexpr unsigned warps = 8;  // that multiply: warps 0 to 7. Warp 8 loads
constexpr unsigned threads = 32 * (warps + 1);

struct Storage {
    OperandTile a[stages];
    OperandTile b[stages];
    RingBarriers<FilledByTma, FreedByThreads, stages> ring;
};
using Ring = decltype(Storage::ring);
// [end]

// [kernel]
/// One CTA for each tile (64, 64) of D.
__global__ void by_ring(const __grid_constant__ OperandMap a_map, const __grid_constant__ OperandMap b_map,
                        MatrixView<float> d, unsigned k_steps)
{
    extern __shared__ __align__(1024) std::byte memory[];
    auto& storage = *reinterpret_cast<Storage*>(memory);
    const auto published = publish_barriers(
        [&](const BarrierInitializer& by) { storage.ring.initialize(by, {.producers = 1, .consumers = warps}); });
    const unsigned row = blockIdx.y * tile, column = blockIdx.x * tile;

    if (threadIdx.x / 32 == warps) {  // the load warp
        RingProducer<Ring> producer(storage.ring, published);
        for (unsigned step = 0; step < k_steps; ++step) {
            producer.fill([&](auto& slot) {
                tma_load(a_map, storage.a[slot.index()], slot, {step * tile, row});
                tma_load(b_map, storage.b[slot.index()], slot, {step * tile, column});
            });
        }
        std::move(producer).drain();
    } else {
        RingConsumer<Ring> consumer(storage.ring, published);
        float sums[side][side]{};
        for (unsigned step = 0; step < k_steps; ++step) {
            auto slot = consumer.wait();
            multiply(sums, storage.a[slot.index()], storage.b[slot.index()]);
            std::move(slot).release_of_warp();
        }
        store(d, row, column, sums);
    }
}
// [end]

// [main]
int main()
{
    return course::multiply_and_check("by_ring", 256, 256, 256, [](course::Product& p) {
        launch(by_ring,
               LaunchConfig(p.stream, {256 / tile, 256 / tile}, {threads}).shared_memory_bytes(sizeof(Storage)),
               OperandMap::of(p.a()), OperandMap::of(p.b()), p.d(), 256 / tile);
    });
}
// [end]
