// Your first kernels for Blackwell's tensor cores, written with the device layer: D = A * B^T, bf16 to f32.
//
// `one_tile` multiplies (128, 64) by (128, 64): load, multiply, read back. `pipelined` multiplies any shape. It keeps
// four stages in flight: one warp loads, one issues MMAs, four store. Both run on a B200 or B300, and anywhere under
// `tessera-emu --device b200`. docs/kernels.md explains them.
#include <tessera/device/accumulator.cuh>
#include <tessera/device/mma.cuh>
#include <tessera/device/output_partition.cuh>
#include <tessera/device/tma.cuh>
#include <tessera/tessera.hpp>

#include <cstdio>
#include <vector>

#include "common/run_example.hpp"

namespace {

using namespace tessera;

// A tile of A or B: 128 rows of 64 elements, which fill the swizzle's 128 bytes. The tensor map and the shared tile are made
// from the same numbers.
constexpr unsigned tile_rows = 128;
constexpr unsigned tile_k = 64;
using OperandMap = TensorMap<bf16, Box<tile_k, tile_rows>, Swizzle::b128>;
using OperandTile = SharedTile<bf16, Box<tile_k, tile_rows>, Swizzle::b128>;

// A warp stores its 32 rows of D in pieces of 32 columns.
constexpr unsigned piece = 32;
using OutputMap = TensorMap<float, Box<piece, piece>, Swizzle::b128>;
using OutputPiece = SharedTile<float, Box<piece, piece>, Swizzle::b128>;

constexpr auto instruction =
    InstructionDescriptor::builder().shape<tile_rows, tile_rows>().a<bf16>().b<bf16>().accumulate<float>().build();
constexpr unsigned instruction_depth = 16;  // elements of K

using Accumulator = TmemAccumulator<tile_rows, CtaGroup::one>;

/// Multiplies one pair of tiles. Executed by one thread.
__device__ void multiply(const Accumulator& accumulator, const OperandTile& a, const OperandTile& b, bool is_first)
{
    const auto a_descriptor = operand_descriptor<Major::k>(a);
    const auto b_descriptor = operand_descriptor<Major::k>(b);
#pragma unroll
    for (unsigned k = 0; k < tile_k; k += instruction_depth) {
        mma(accumulator, a_descriptor.from_k(k), b_descriptor.from_k(k), instruction,
            is_first && k == 0 ? Accumulate::overwrite : Accumulate::add);
    }
}

/// One accumulator, which the MMA warp completes and four warps read.
using Sums = RingBarriers<AccumulatorFull, AccumulatorEmpty, 1>;
constexpr unsigned epilogue_warps = 4;

// ---- one tile

using SingleStage = RingBarriers<FilledByTma, FreedByTensorCore, 1>;

/// d is (128, 128), row-major. 128 threads.
__global__ void one_tile(const __grid_constant__ OperandMap a_map, const __grid_constant__ OperandMap b_map,
                         DeviceSpan<float> d)
{
    __shared__ OperandTile a;
    __shared__ OperandTile b;
    __shared__ SingleStage stage;
    __shared__ Sums sums;
    __shared__ TmemSlot slot;
    const unsigned warp = threadIdx.x / 32;

    const auto published = publish_barriers([&](const BarrierInitializer& by) {
        stage.initialize(by);
        sums.initialize(by, {.producers = 1, .consumers = epilogue_warps});
    });
    auto tensor_memory = Tmem<Unallocated, tile_rows, CtaGroup::one>(slot).allocate(warp == 0);
    const auto accumulator = tensor_memory.accumulator<tile_rows>(0);

    if (warp == 0) {  // the whole warp waits, one thread issues: see Barrier::wait
        RingProducer producer(stage, published);
        producer.fill([&](auto& filled) {
            tma_load(a_map, a, filled, {0, 0});
            tma_load(b_map, b, filled, {0, 0});
        });

        auto sum = RingProducer(sums, published).acquire();
        RingConsumer consumer(stage, published);
        multiply_slot(consumer, accumulator, [&](const auto&) { multiply(accumulator, a, b, true); });
        publish_after_mma(std::move(sum), accumulator, elect_one());
    }
    __syncwarp();

    auto sum = read_accumulators<tile_rows>(sums, published, tensor_memory).wait();
    for (unsigned column = 0; column < tile_rows; column += 16) {
        const auto values = sum.load_rows<16>(warp, column).wait();
        for (unsigned j = 0; j < 16; ++j) {
            d[threadIdx.x * tile_rows + column + j] = values[j];
        }
    }
    std::move(sum).release();
    std::move(tensor_memory).release(warp == 0);
}

// ---- any shape

constexpr unsigned stages = 4;
constexpr unsigned load_warp = 4;
constexpr unsigned mma_warp = 5;
constexpr unsigned pipelined_threads = 6 * 32;

struct PipelinedStorage {
    OperandTile a[stages];
    OperandTile b[stages];
    OutputPiece staged[epilogue_warps];
    RingBarriers<FilledByTma, FreedByTensorCore, stages> ring;
    Sums sums;
    TmemSlot slot;
};
using Ring = decltype(PipelinedStorage::ring);

/// One CTA for each tile (128, 128) of D. TMA loads zeros from outside of A and B, and stores nothing outside of D.
__global__ void __launch_bounds__(pipelined_threads, 1)
    pipelined(const __grid_constant__ OperandMap a_map, const __grid_constant__ OperandMap b_map,
              const __grid_constant__ OutputMap d_map, unsigned m, unsigned n, unsigned k_steps)
{
    extern __shared__ __align__(1024) std::byte memory[];
    auto& storage = *reinterpret_cast<PipelinedStorage*>(memory);
    const unsigned warp = threadIdx.x / 32;
    const auto published = publish_barriers([&](const BarrierInitializer& by) {
        storage.ring.initialize(by);
        storage.sums.initialize(by, {.producers = 1, .consumers = epilogue_warps});
    });
    auto tensor_memory = Tmem<Unallocated, tile_rows, CtaGroup::one>(storage.slot).allocate(warp == mma_warp);
    const auto accumulator = tensor_memory.accumulator<tile_rows>(0);
    const OutputPartition<tile_rows, tile_rows> partition(m, n, 8);
    const auto tile = partition.tile(SingleWorkQueue().first());

    if (warp == load_warp) {
        RingProducer<Ring> producer(storage.ring, published);
        for (unsigned step = 0; step < k_steps; ++step) {
            producer.fill([&](auto& slot) {
                const auto k = static_cast<int>(step * tile_k);
                tma_load(a_map, storage.a[slot.index()], slot, {k, tile.first_row()});
                tma_load(b_map, storage.b[slot.index()], slot, {k, tile.first_column()});
            });
        }
        std::move(producer).drain();
    } else if (warp == mma_warp) {
        auto sum = RingProducer(storage.sums, published).acquire();
        RingConsumer<Ring> consumer(storage.ring, published);
        for (unsigned step = 0; step < k_steps; ++step) {
            multiply_slot(consumer, accumulator,
                          [&](const auto& slot) {  // frees the stage when these MMAs have read it
                              multiply(accumulator, storage.a[slot.index()], storage.b[slot.index()], step == 0);
                          });
        }
        publish_after_mma(std::move(sum), accumulator, elect_one());
    } else {
        auto sum = read_accumulators<tile_rows>(storage.sums, published, tensor_memory).wait();
        OutputPiece& staged = storage.staged[warp];
        const unsigned lane = threadIdx.x % 32;
        for (unsigned j = 0; j < tile_rows / piece; ++j) {
            for (unsigned half = 0; half < piece; half += 16) {
                const auto values = sum.load_rows<16>(warp, j * piece + half).wait();
                for (unsigned i = 0; i < 16; i += 4) {
                    staged.vector<float4>(lane, half + i) =
                        make_float4(values[i], values[i + 1], values[i + 2], values[i + 3]);
                }
            }
            make_visible_to_tma();
            __syncwarp();
            if (lane == 0) {
                tma_store(d_map, tile.part<piece, piece>(warp, j), staged);
                tma_commit_stores();
                tma_wait_stores_read<0>();
            }
            __syncwarp();  // the piece may be written again
        }
        std::move(sum).release();
    }
    __syncwarp();
    std::move(tensor_memory).release(warp == mma_warp);
}

// ---- the host's side

/// Small integers: every sum is exact.
std::vector<bf16> small_integers(std::size_t elements, unsigned seed)
{
    std::vector<bf16> matrix(elements);
    for (bf16& element : matrix) {
        seed = seed * 1664525U + 1013904223U;  // Numerical Recipes' linear congruential generator
        element = bf16(static_cast<float>(seed >> 29) - 4.0F);
    }
    return matrix;
}

std::size_t count_wrong(std::size_t m, std::size_t n, std::size_t k, const std::vector<bf16>& a,
                        const std::vector<bf16>& b, const std::vector<float>& d)
{
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < m * n; ++i) {
        float sum = 0;
        for (std::size_t j = 0; j < k; ++j) {
            sum += float(a[i / n * k + j]) * float(b[i % n * k + j]);
        }
        wrong += d[i] != sum ? 1 : 0;
    }
    return wrong;
}

std::size_t multiply_and_check(std::size_t m, std::size_t n, std::size_t k, bool only_one_tile)
{
    const Stream stream;
    const auto a = small_integers(m * k, 1);
    const auto b = small_integers(n * k, 2);
    const auto device_a = DeviceBuffer<bf16>::from_host(stream, a);
    const auto device_b = DeviceBuffer<bf16>::from_host(stream, b);
    DeviceBuffer<float> device_d(stream, m * n);
    const auto a_map = OperandMap::of(device_a.matrix(m, k));
    const auto b_map = OperandMap::of(device_b.matrix(n, k));
    if (only_one_tile) {
        launch(one_tile, LaunchConfig(stream, {1}, {128}), a_map, b_map, device_d.span());
    } else {
        const auto d_map = OutputMap::of(device_d.matrix(m, n));
        const auto tiles = [](std::size_t extent) {
            return static_cast<unsigned>((extent + tile_rows - 1) / tile_rows);
        };
        const auto k_steps = static_cast<unsigned>((k + tile_k - 1) / tile_k);
        launch(pipelined,
               LaunchConfig(stream, {tiles(m) * tiles(n)}, {pipelined_threads})
                   .shared_memory_bytes(sizeof(PipelinedStorage)),
               a_map, b_map, d_map, static_cast<unsigned>(m), static_cast<unsigned>(n), k_steps);
    }
    const std::size_t wrong = count_wrong(m, n, k, a, b, device_d.to_vector());
    std::printf("%zux%zux%zu: %zu of %zu elements wrong\n", m, n, k, wrong, m * n);
    return wrong;
}

}  // namespace

int main()
{
    return examples::run_example("own_tcgen05_kernel", [] {
        if (Device::count() == 0 || Device::current().properties().compute_capability_major != 10) {
            std::fputs("own_tcgen05_kernel: skipped, because there is no device of compute capability 10\n", stderr);
            return examples::exit_no_device;
        }
        const std::size_t wrong = multiply_and_check(128, 128, 64, true) + multiply_and_check(300, 200, 328, false);
        return wrong == 0 ? examples::exit_success : examples::exit_failure;
    });
}
