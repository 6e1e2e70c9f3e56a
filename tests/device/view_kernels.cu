#include "view_kernels.hpp"

#include "tessera/device/tma.cuh"
#include "tessera/device/warp.cuh"
#include "tessera/mdspan.hpp"

namespace tessera::test {
namespace {

__global__ void add_batches(BatchView<float> out, BatchView<const float, ColumnMajor> in, float addend)
{
    for (std::int64_t outer = 0; outer < out.outer_count(); ++outer) {
        for (std::int64_t inner = 0; inner < out.count(); ++inner) {
            const MatrixView<float> to = out.at(outer, inner);
            const MatrixView<const float, ColumnMajor> from = in.at(outer * in.count() + inner);
            for (std::int64_t i = threadIdx.x; i < to.rows() * to.columns(); i += blockDim.x) {
                to(i / to.columns(), i % to.columns()) = from(i / to.columns(), i % to.columns()) + addend;
            }
        }
    }
}

__global__ void transpose_tiles(MatrixView<float> out, MatrixView<const float> in)
{
    const auto from = in.tile(blockIdx.y, blockIdx.x, 8, 8);
    const auto to = out.block(blockIdx.x * 8, blockIdx.y * 8, from.columns(), from.rows()).transposed();
    if (threadIdx.y < from.rows() && threadIdx.x < from.columns()) {
        to(threadIdx.y, threadIdx.x) = from(threadIdx.y, threadIdx.x);
    }
}

__global__ void transpose(DisjointMatrix<float> out, MatrixView<const float> in)
{
    const auto index = ThreadIndex2D::in_grid();
    if (out.contains(index)) {
        out[index] = in(index.column(), index.row());
    }
}

__global__ void transpose_mdspans(MatrixView<float> out, MatrixView<const float> in)
{
    const auto to = to_cuda_mdspan(out);
    const auto from = to_cuda_mdspan(in.transposed());
    for (std::int64_t i = threadIdx.x; i < to.extent(0) * to.extent(1); i += blockDim.x) {
        to(i / to.extent(1), i % to.extent(1)) = from(i / to.extent(1), i % to.extent(1));
    }
}

__global__ void number(DisjointMatrix<float, ColumnMajor> out)
{
    for (auto index = ThreadIndex2D::in_grid(); index.row() < out.rows(); index.next_row()) {
        for (; index.column() < out.columns(); index.next_column()) {
            out[index] = static_cast<float>(index.row() * out.columns() + index.column());
        }
    }
}

__global__ void make_mistake(MatrixView<float> matrix, Mistake mistake)
{
    switch (mistake) {
        case Mistake::none: matrix(3, 5) = 1; break;
        case Mistake::row_below: matrix(-1, 0) = 1; break;
        case Mistake::row_above: matrix(4, 0) = 1; break;
        case Mistake::column_below: matrix(0, -1) = 1; break;
        case Mistake::column_above: matrix(0, 6) = 1; break;
        case Mistake::block: matrix.block(1, 0, 4, 6)(0, 0) = 1; break;
        case Mistake::tile: matrix.tile(2, 0, 2, 2)(0, 0) = 1; break;
        case Mistake::batch: BatchView<float>(matrix, 1, 0).at(1)(0, 0) = 1; break;
        case Mistake::disjoint: {
            const auto index = ThreadIndex2D::in_grid();
            DisjointMatrix<float> out = *reinterpret_cast<const DisjointMatrix<float>*>(&matrix);
            out[index] = 1;
            break;
        }
    }
}

__global__ void misuse_slot(SlotMistake mistake)
{
#if __CUDA_ARCH__ >= 900
    using Ring = RingBarriers<FilledByTma, FreedByThreads, 1>;
    __shared__ Ring ring;
    const auto published =
        publish_barriers([&](const BarrierInitializer& by) { ring.initialize(by, {.producers = 1, .consumers = 1}); });
    RingProducer<Ring> producer(ring, published);
    if (mistake == SlotMistake::filled_with_nothing) {
        producer.fill([](auto&) {});
        return;
    }
    auto slot = producer.acquire();
    if (mistake == SlotMistake::none) {
        std::move(slot).publish_written();
    }
#else
    static_cast<void>(mistake);
#endif
}

template <class Map>
__global__ void reverse_rows(const __grid_constant__ Map in, const __grid_constant__ Map out,
                             DeviceSpan<typename Map::element_type> seen, DeviceSpan<unsigned> wrong)
{
#if __CUDA_ARCH__ >= 900
    using T = typename Map::element_type;
    constexpr unsigned columns = Map::box_type::extent(0);
    using Ring = RingBarriers<FilledByTma, FreedByThreads, 1>;
    __shared__ SharedTile<T, typename Map::box_type, Map::swizzle> tile;
    __shared__ Ring ring;
    const auto published =
        publish_barriers([&](const BarrierInitializer& by) { ring.initialize(by, {.producers = 1, .consumers = 32}); });
    RingProducer<Ring> producer(ring, published);
    RingConsumer<Ring> consumer(ring, published);
    producer.fill([&](auto& slot) { tma_load(in, tile, slot, {blockIdx.x * columns, std::size_t{blockIdx.y}}); });
    auto slot = consumer.wait();
    for (unsigned row = 0; row < tile_rows; ++row) {
        for (unsigned column = threadIdx.x; column < columns; column += 32) {
            seen[row * columns + column] = tile(row, column);
        }
        constexpr unsigned in_vector = 16 / sizeof(T);
        for (unsigned column = threadIdx.x * in_vector; column < columns; column += 32 * in_vector) {
            const uint4 vector = tile.template vector<uint4>(row, column);
            for (unsigned i = 0; i < in_vector; ++i) {
                if (reinterpret_cast<const T*>(&vector)[i] != tile(row, column + i)) {
                    atomicAdd(&wrong[0], 1);
                }
            }
        }
    }
    std::move(slot).release();
    __syncwarp();
    for (int row = 0; row < static_cast<int>(tile_rows); ++row) {
        for (unsigned column = threadIdx.x; column < columns; column += 32) {
            tile(row, column) = seen[(tile_rows - 1 - static_cast<unsigned>(row)) * columns + column];
        }
    }
    make_visible_to_tma();
    __syncwarp();
    if (threadIdx.x == 0) {
        tma_store(out, {0, 0}, tile);
        tma_commit_stores();
        tma_wait_stores_read<0>();
    }
#else
    static_cast<void>(seen);
    static_cast<void>(wrong);
#endif
}

__global__ void load_alone(const __grid_constant__ LoneMap map, DeviceSpan<float> out)
{
#if __CUDA_ARCH__ >= 900
    using Ring = RingBarriers<FilledByTma, FreedByThreads, 2>;
    __shared__ SharedTile<float, Box<32, lone_rows>, Swizzle::b128> tiles[Ring::slots];
    __shared__ Ring ring;
    const auto published =
        publish_barriers([&](const BarrierInitializer& by) { ring.initialize(by, {.producers = 1, .consumers = 1}); });
    const auto rows = static_cast<unsigned>(out.size() / 32);
    if (threadIdx.x >= 32) {
        if (!elect_one()) {
            exit_thread();
        }
        RingProducer producer(ring, published);
        for (unsigned row = 0; row < rows; row += lone_rows) {
            producer.fill_alone([&](auto& slot) { tma_load(map, tiles[slot.index()], slot, {0, row}); });
        }
        std::move(producer).drain();
    } else {
        RingConsumer consumer(ring, published);
        for (unsigned row = 0; row < rows; row += lone_rows) {
            auto slot = consumer.wait();
            for (unsigned i = 0; i < lone_rows; ++i) {
                out[(row + i) * 32 + threadIdx.x] = tiles[slot.index()](i, threadIdx.x);
            }
            std::move(slot).release_of_warp();
        }
    }
#else
    static_cast<void>(out);
#endif
}

}  // namespace

Kernel<BatchView<float>, BatchView<const float, ColumnMajor>, float> add_batches_kernel() { return add_batches; }
Kernel<MatrixView<float>, MatrixView<const float>> transpose_tiles_kernel() { return transpose_tiles; }
Kernel<DisjointMatrix<float>, MatrixView<const float>> transpose_kernel() { return transpose; }
Kernel<MatrixView<float>, MatrixView<const float>> transpose_mdspans_kernel() { return transpose_mdspans; }
Kernel<DisjointMatrix<float, ColumnMajor>> number_kernel() { return number; }
Kernel<MatrixView<float>, Mistake> mistake_kernel() { return make_mistake; }
Kernel<SlotMistake> misuse_slot_kernel() { return misuse_slot; }
Kernel<LoneMap, DeviceSpan<float>> lone_loader_kernel() { return load_alone; }

template <class Map>
Kernel<Map, Map, DeviceSpan<typename Map::element_type>, DeviceSpan<unsigned>> reverse_rows_kernel()
{
    return reverse_rows<Map>;
}

// Rows as wide as the swizzle's span, and narrower rows, which still begin where a span begins.
#define TESSERA_TEST_INSTANTIATE(T, BYTES, PATTERN)                                                          \
    template Kernel<TileMap<T, BYTES, Swizzle::PATTERN>, TileMap<T, BYTES, Swizzle::PATTERN>, DeviceSpan<T>, \
                    DeviceSpan<unsigned>>                                                                    \
    reverse_rows_kernel<TileMap<T, BYTES, Swizzle::PATTERN>>();
#define TESSERA_TEST_INSTANTIATE_ALL(T)    \
    TESSERA_TEST_INSTANTIATE(T, 48, none)  \
    TESSERA_TEST_INSTANTIATE(T, 32, b32)   \
    TESSERA_TEST_INSTANTIATE(T, 16, b32)   \
    TESSERA_TEST_INSTANTIATE(T, 64, b64)   \
    TESSERA_TEST_INSTANTIATE(T, 48, b64)   \
    TESSERA_TEST_INSTANTIATE(T, 128, b128) \
    TESSERA_TEST_INSTANTIATE(T, 80, b128)

TESSERA_TEST_INSTANTIATE_ALL(std::uint8_t)
TESSERA_TEST_INSTANTIATE_ALL(std::uint16_t)
TESSERA_TEST_INSTANTIATE_ALL(std::uint32_t)
TESSERA_TEST_INSTANTIATE_ALL(std::uint64_t)

}  // namespace tessera::test
