// Chapter 2: TMA and the swizzle. TMA brings the tiles, threads multiply them.
#include <tessera/device/tma.cuh>

#include "course/course.hpp"

using namespace tessera;

// [types]
// A tile of A or B: 64 rows of 64 elements, 128 bytes each.
constexpr unsigned tile = 64;
using OperandMap = TensorMap<bf16, Box<tile, tile>, Swizzle::b128>;
using OperandTile = SharedTile<bf16, Box<tile, tile>, Swizzle::b128>;
// [end]

// [multiply]
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
// [end]

__device__ void store(MatrixView<float> d, unsigned row, unsigned column, const float (&sums)[side][side])
{
    const unsigned x = threadIdx.x % 16, y = threadIdx.x / 16;
    for (unsigned i = 0; i < side; ++i) {
        for (unsigned j = 0; j < side; ++j) {
            d(row + y + 16 * i, column + x + 16 * j) = sums[i][j];
        }
    }
}

// [kernel]
constexpr unsigned threads = 256;

/// One CTA for each tile (64, 64) of D.
__global__ void by_tma(const __grid_constant__ OperandMap a_map, const __grid_constant__ OperandMap b_map,
                       MatrixView<float> d, unsigned k_steps)
{
    __shared__ OperandTile a;
    __shared__ OperandTile b;
    __shared__ RingBarriers<FilledByTma, FreedByThreads, 1> stage;
    const auto published = publish_barriers(
        [&](const BarrierInitializer& by) { stage.initialize(by, {.producers = 1, .consumers = threads}); });
    const unsigned row = blockIdx.y * tile, column = blockIdx.x * tile;

    RingProducer producer(stage, published);
    RingConsumer consumer(stage, published);
    float sums[side][side]{};
    for (unsigned step = 0; step < k_steps; ++step) {
        if (threadIdx.x < 32) {  // the first warp: it waits until the tiles are free, and one thread loads
            producer.fill([&](auto& slot) {
                tma_load(a_map, a, slot, {step * tile, row});
                tma_load(b_map, b, slot, {step * tile, column});
            });
        }
        auto filled = consumer.wait();
        multiply(sums, a, b);
        std::move(filled).release();
    }
    store(d, row, column, sums);
}
// [end]

// [main]
int main()
{
    return course::multiply_and_check("by_tma", 256, 256, 256, [](course::Product& p) {
        launch(by_tma, LaunchConfig(p.stream, {256 / tile, 256 / tile}, {threads}), OperandMap::of(p.a()),
               OperandMap::of(p.b()), p.d(), 256 / tile);
    });
}
// [end]
