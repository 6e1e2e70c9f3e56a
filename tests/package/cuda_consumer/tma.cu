// A user's kernel on the device layer: one warp loads tiles through a tensor map into a ring, the others read them.

#include <cstdio>
#include <tessera/device/disjoint_span.cuh>
#include <tessera/device/pipeline.cuh>
#include <tessera/device/tma.cuh>
#include <tessera/device/warp.cuh>
#include <tessera/tessera.hpp>
#include <vector>

using namespace tessera;

constexpr unsigned rows = 4;
constexpr unsigned columns = 32;
using Map = TensorMap<float, Box<columns, rows>, Swizzle::none>;
using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;

/// Adds up the tiles of a tall matrix, element by element: `sums` has the elements of one tile. Warp 0 loads, the
/// others add.
__global__ void add_tiles(const __grid_constant__ Map map, int tiles, DisjointSpan<float> sums)
{
    __shared__ SharedTile<float, Box<columns, rows>, Swizzle::none> stages[Ring::slots];
    __shared__ Ring ring;
    const auto published = publish_barriers(
        [&](const BarrierInitializer& by) { ring.initialize(by, {.producers = 1, .consumers = rows * columns}); });
    if (threadIdx.x < 32) {
        RingProducer<Ring> producer(ring, published);
        for (int tile = 0; tile < tiles; ++tile) {
            producer.fill(
                [&](auto& slot) { tma_load(map, stages[slot.index()], slot, {0, tile * static_cast<int>(rows)}); });
        }
        std::move(producer).drain();
    } else {
        auto index = ThreadIndex::in_grid();
        const unsigned element = threadIdx.x - 32;
        RingConsumer<Ring> consumer(ring, published);
        float sum = 0;
        for (int tile = 0; tile < tiles; ++tile) {
            auto slot = consumer.wait();
            sum += stages[slot.index()](element / columns, element % columns);
            std::move(slot).release();
        }
        sums[index] = sum;
    }
}

int main()
try {
    if (Device::count() == 0) {
        std::puts("no device: nothing was launched");
        return 0;
    }
    constexpr int tiles = 5;
    std::vector<float> matrix(tiles * rows * columns);
    for (std::size_t i = 0; i < matrix.size(); ++i) {
        matrix[i] = static_cast<float>(i);
    }
    Stream stream;
    const auto tall = DeviceBuffer<float>::from_host(stream, matrix);
    DeviceBuffer<float> sums(stream, 32 + rows * columns);  // the elements of the loading warp stay unchanged
    sums.fill(stream, 0.0F);
    launch(add_tiles, LaunchConfig(stream, {1}, {32 + rows * columns}), Map::of(tall.matrix(tiles * rows, columns)),
           tiles, DisjointSpan(sums));
    const std::vector<float> result = sums.to_vector();
    for (std::size_t i = 0; i < rows * columns; ++i) {
        float expected = 0;
        for (std::size_t tile = 0; tile < tiles; ++tile) {
            expected += matrix[tile * rows * columns + i];
        }
        if (result[32 + i] != expected) {
            std::printf("sum %zu is %g and not %g\n", i, result[32 + i], expected);
            return 1;
        }
    }
    std::puts("launched: all elements are right");
    return 0;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
