// Chapter 4: tensor memory and tcgen05.mma. The tensor core multiplies, one stage at a time.
#include <tessera/device/accumulator.cuh>
#include <tessera/device/mma.cuh>
#include <tessera/device/tma.cuh>

#include "course/course.hpp"

using namespace tessera;

// [types]
constexpr unsigned tile = 128;   // rows of a tile of A, B and D
constexpr unsigned tile_k = 64;  // 128 bytes of bf16
using OperandMap = TensorMap<bf16, Box<tile_k, tile>, Swizzle::b128>;
using OperandTile = SharedTile<bf16, Box<tile_k, tile>, Swizzle::b128>;

constexpr auto instruction =
    InstructionDescriptor::builder().shape<tile, tile>().a<bf16>().b<bf16>().accumulate<float>().build();
constexpr unsigned mma_k = 16;  // 32 bytes of bf16
using Accumulator = TmemAccumulator<tile, CtaGroup::one>;
// [end]

// [multiply]
/// Adds one stage to the accumulator: four instructions. Executed by one thread.
__device__ void multiply(const Accumulator& accumulator, const OperandTile& a, const OperandTile& b, bool first)
{
    const auto a_descriptor = operand_descriptor<Major::k>(a);
    const auto b_descriptor = operand_descriptor<Major::k>(b);
    for (unsigned k = 0; k < tile_k; k += mma_k) {
        mma(accumulator, a_descriptor.from_k(k), b_descriptor.from_k(k), instruction,
            first && k == 0 ? Accumulate::overwrite : Accumulate::add);
    }
}
// [end]

// [kernel]
constexpr unsigned warps = 4;

/// One CTA for each tile (128, 128) of D.
__global__ void by_tensor_core(const __grid_constant__ OperandMap a_map, const __grid_constant__ OperandMap b_map,
                               MatrixView<float> d, unsigned k_steps)
{
    __shared__ OperandTile a;
    __shared__ OperandTile b;
    __shared__ RingBarriers<FilledByTma, FreedByTensorCore, 1> stage;
    __shared__ RingBarriers<AccumulatorFull, AccumulatorEmpty, 1> sums;
    __shared__ TmemSlot slot;
    const unsigned warp = threadIdx.x / 32, row = blockIdx.y * tile, column = blockIdx.x * tile;
    const auto published = publish_barriers([&](const BarrierInitializer& by) {
        stage.initialize(by);
        sums.initialize(by, {.producers = 1, .consumers = warps});
    });
    auto tensor_memory = Tmem<Unallocated, tile, CtaGroup::one>(slot).allocate(warp == 0);
    const auto accumulator = tensor_memory.accumulator<tile>(0);

    if (warp == 0) {  // loads, then multiplies, one stage after the other
        RingProducer producer(stage, published);
        RingConsumer consumer(stage, published);
        auto sum = RingProducer(sums, published).acquire();
        for (unsigned step = 0; step < k_steps; ++step) {
            producer.fill([&](auto& filling) {
                tma_load(a_map, a, filling, {step * tile_k, row});
                tma_load(b_map, b, filling, {step * tile_k, column});
            });
            multiply_slot(consumer, accumulator, [&](const auto&) { multiply(accumulator, a, b, step == 0); });
        }
        publish_after_mma(std::move(sum), accumulator, elect_one());
    }
    __syncwarp();

    auto sum = read_accumulators<tile>(sums, published, tensor_memory).wait();
    for (unsigned first = 0; first < tile; first += 16) {  // this thread's row, 16 columns at a time
        const auto values = sum.load_rows<16>(warp, first).wait();
        for (unsigned j = 0; j < 16; ++j) {
            d(row + threadIdx.x, column + first + j) = values[j];
        }
    }
    std::move(sum).release();
    std::move(tensor_memory).release(warp == 0);
}
// [end]

// [main]
int main()
{
    return course::multiply_and_check("by_tensor_core", 256, 256, 256, [](course::Product& p) {
        launch(by_tensor_core, LaunchConfig(p.stream, {256 / tile, 256 / tile}, {32 * warps}), OperandMap::of(p.a()),
               OperandMap::of(p.b()), p.d(), 256 / tile_k);
    });
}
// [end]
