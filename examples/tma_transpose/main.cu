// Transposes a matrix through shared memory with TMA: one warp loads tiles into a ring, another one transposes them,
// and TMA stores the result. For compute capability 9.0 and later.
//
// A SharedTile is indexed by row and column, wherever the swizzle puts an element. At the matrix's edges TMA fills a
// tile up with zeros, and does not store them.
#include <tessera/device/pipeline.cuh>
#include <tessera/device/tma.cuh>
#include <tessera/device/warp.cuh>
#include <tessera/tessera.hpp>

#include <cstdio>
#include <utility>
#include <vector>

#include "common/exact_sum.hpp"
#include "common/run_example.hpp"

using namespace tessera;

namespace {

constexpr unsigned extent = 32;  // of a tile: a row fills the swizzle's 128 bytes
using Map = TensorMap<float, Box<extent, extent>, Swizzle::b128>;
using Tile = SharedTile<float, Box<extent, extent>, Swizzle::b128>;
using Ring = RingBarriers<FilledByTma, FreedByThreads, 3>;

/// A CTA of two warps for each row of tiles.
__global__ void transpose(const __grid_constant__ Map in, const __grid_constant__ Map out, unsigned tile_columns)
{
    __shared__ Tile stages[Ring::slots];
    __shared__ Tile transposed;
    __shared__ Ring ring;
    const auto published =
        publish_barriers([&](const BarrierInitializer& by) { ring.initialize(by, {.producers = 1, .consumers = 32}); });
    const unsigned row = blockIdx.x * extent;

    if (threadIdx.x < 32) {
        RingProducer<Ring> producer(ring, published);
        for (unsigned column = 0; column < tile_columns * extent; column += extent) {
            producer.fill([&](auto& slot) {
                tma_load(in, stages[slot.index()], slot, {column, row});  // innermost first
            });
        }
        std::move(producer).drain();
    } else {
        const unsigned lane = threadIdx.x % 32;
        RingConsumer<Ring> consumer(ring, published);
        for (unsigned column = 0; column < tile_columns * extent; column += extent) {
            auto slot = consumer.wait();
            for (unsigned j = 0; j < extent; ++j) {
                transposed(j, lane) = stages[slot.index()](lane, j);
            }
            std::move(slot).release();
            make_visible_to_tma();
            __syncwarp();
            if (lane == 0) {
                tma_store(out, {row, column}, transposed);
                tma_commit_stores();
                tma_wait_stores_read<0>();
            }
            __syncwarp();  // the tile may be written again
        }
    }
}

int run()
{
    constexpr std::size_t rows = 200, columns = 136;  // not multiples of a tile; a row is a multiple of TMA's 16 bytes
    const auto matrix = examples::random_values<float>(rows * columns, 1);
    const Stream stream;
    const auto in = DeviceBuffer<float>::from_host(stream, matrix);
    DeviceBuffer<float> out(stream, columns * rows);
    constexpr auto tiles = [](std::size_t elements) { return static_cast<unsigned>((elements + extent - 1) / extent); };
    launch(transpose, LaunchConfig(stream, {tiles(rows)}, {2 * 32}), Map::of(in.matrix(rows, columns)),
           Map::of(out.matrix(columns, rows)), tiles(columns));

    const auto result = out.to_vector();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
        wrong += result[i] != matrix[i % rows * columns + i / rows] ? 1 : 0;
    }
    std::printf("tma_transpose: %zu of %zu elements are wrong\n", wrong, result.size());
    return wrong == 0 ? examples::exit_success : examples::exit_failure;
}

}  // namespace

int main() { return examples::run_example("tma_transpose", run); }
