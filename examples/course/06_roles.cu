// Chapter 6: warp roles and the pipeline. One warp loads, one multiplies, four store.
#include <tessera/device/accumulator.cuh>
#include <tessera/device/mma.cuh>
#include <tessera/device/tma.cuh>

#include "course/course.hpp"

using namespace tessera;

constexpr unsigned tile = 128;
constexpr unsigned tile_k = 64;
using OperandMap = TensorMap<bf16, Box<tile_k, tile>, Swizzle::b128>;
using OperandTile = SharedTile<bf16, Box<tile_k, tile>, Swizzle::b128>;

constexpr auto instruction =
    InstructionDescriptor::builder().shape<tile, tile>().a<bf16>().b<bf16>().accumulate<float>().build();
constexpr unsigned mma_k = 16;
using Accumulator = TmemAccumulator<tile, CtaGroup::one>;

__device__ void multiply(const Accumulator& accumulator, const OperandTile& a, const OperandTile& b, bool first)
{
    const auto a_descriptor = operand_descriptor<Major::k>(a);
    const auto b_descriptor = operand_descriptor<Major::k>(b);
    for (unsigned k = 0; k < tile_k; k += mma_k) {
        mma(accumulator, a_descriptor.from_k(k), b_descriptor.from_k(k), instruction,
            first && k == 0 ? Accumulate::overwrite : Accumulate::add);
    }
}

// [storage]
constexpr unsigned stages = 3;
constexpr unsigned epilogue_warps = 4;  // warps 0 to 3: each reads the 32 lanes of its place
constexpr unsigned load_warp = 4;
constexpr unsigned mma_warp = 5;
constexpr unsigned threads = 6 * 32;

struct Storage {
    OperandTile a[stages];
    OperandTile b[stages];
    RingBarriers<FilledByTma, FreedByTensorCore, stages> ring;
    RingBarriers<AccumulatorFull, AccumulatorEmpty, 1> sums;
    TmemSlot slot;
};
using Ring = decltype(Storage::ring);
// [end]

// [kernel]
/// One CTA for each tile (128, 128) of D.
__global__ void by_roles(const __grid_constant__ OperandMap a_map, const __grid_constant__ OperandMap b_map,
                         MatrixView<float> d, unsigned k_steps)
{
    extern __shared__ __align__(1024) std::byte memory[];
    auto& storage = *reinterpret_cast<Storage*>(memory);
    const unsigned warp = threadIdx.x / 32, row = blockIdx.y * tile, column = blockIdx.x * tile;
    const auto published = publish_barriers([&](const BarrierInitializer& by) {
        storage.ring.initialize(by);
        storage.sums.initialize(by, {.producers = 1, .consumers = epilogue_warps});
    });
    auto tensor_memory = Tmem<Unallocated, tile, CtaGroup::one>(storage.slot).allocate(warp == mma_warp);
    const auto accumulator = tensor_memory.accumulator<tile>(0);

    if (warp == load_warp) {
        RingProducer<Ring> producer(storage.ring, published);
        for (unsigned step = 0; step < k_steps; ++step) {
            producer.fill([&](auto& slot) {
                tma_load(a_map, storage.a[slot.index()], slot, {step * tile_k, row});
                tma_load(b_map, storage.b[slot.index()], slot, {step * tile_k, column});
            });
        }
        std::move(producer).drain();
    } else if (warp == mma_warp) {
        auto sum = RingProducer(storage.sums, published).acquire();
        RingConsumer<Ring> consumer(storage.ring, published);
        for (unsigned step = 0; step < k_steps; ++step) {
            multiply_slot(consumer, accumulator, [&](const auto& slot) {
                multiply(accumulator, storage.a[slot.index()], storage.b[slot.index()], step == 0);
            });
        }
        publish_after_mma(std::move(sum), accumulator, elect_one());
    } else {
        auto sum = read_accumulators<tile>(storage.sums, published, tensor_memory).wait();
        for (unsigned first = 0; first < tile; first += 16) {
            const auto values = sum.load_rows<16>(warp, first).wait();
            for (unsigned j = 0; j < 16; ++j) {
                d(row + threadIdx.x, column + first + j) = values[j];
            }
        }
        std::move(sum).release();
    }
    __syncwarp();
    std::move(tensor_memory).release(warp == mma_warp);
}
// [end]

// [main]
int main()
{
    return course::multiply_and_check("by_roles", 256, 256, 256, [](course::Product& p) {
        launch(by_roles,
               LaunchConfig(p.stream, {256 / tile, 256 / tile}, {threads}).shared_memory_bytes(sizeof(Storage)),
               OperandMap::of(p.a()), OperandMap::of(p.b()), p.d(), 256 / tile_k);
    });
}
// [end]
