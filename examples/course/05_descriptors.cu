// Chapter 5: descriptors. The tensor core reads B as it is stored, K rows of N elements, without a transposition.
#include <tessera/device/accumulator.cuh>
#include <tessera/device/mma.cuh>
#include <tessera/device/tma.cuh>

#include "course/course.hpp"

using namespace tessera;

// [types]
constexpr unsigned tile = 128;
constexpr unsigned tile_k = 64;
using AMap = TensorMap<bf16, Box<tile_k, tile>, Swizzle::b128>;  // 128 rows along M, of 64 elements along K
using ATile = SharedTile<bf16, Box<tile_k, tile>, Swizzle::b128>;

// B is (k, n): its rows are along K. A box is as wide as the swizzle, 64 elements along N; two of them are a tile.
constexpr unsigned block_n = 64;
using BMap = TensorMap<bf16, Box<block_n, tile_k>, Swizzle::b128>;  // 64 rows along K, of 64 elements along N
using BBlock = SharedTile<bf16, Box<block_n, tile_k>, Swizzle::b128>;

using ALayout = SharedLayout<Major::k, Swizzle::b128, tile, tile_k, sizeof(bf16)>;
using BLayout = SharedLayout<Major::mn, Swizzle::b128, tile, tile_k, sizeof(bf16)>;

constexpr auto instruction = InstructionDescriptor::builder()
                                 .shape<tile, tile>()
                                 .a<bf16>()
                                 .b<bf16>()
                                 .majors<Major::k, Major::mn>()
                                 .accumulate<float>()
                                 .build();
constexpr unsigned mma_k = 16;
using Accumulator = TmemAccumulator<tile, CtaGroup::one>;
// [end]

// [multiply]
__device__ std::uint32_t shared_address(const void* data)
{
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(data));
}

/// Adds one stage to the accumulator. Executed by one thread.
__device__ void multiply(const Accumulator& accumulator, const ATile& a, const BBlock (&b)[2], bool first)
{
    const auto a_descriptor = tcgen05_descriptor<ALayout>(shared_address(&a));
    const auto b_descriptor = tcgen05_descriptor<BLayout>(shared_address(&b));
    for (unsigned k = 0; k < tile_k; k += mma_k) {
        mma(accumulator, a_descriptor.from_k(k), b_descriptor.from_k(k), instruction,
            first && k == 0 ? Accumulate::overwrite : Accumulate::add);
    }
}
// [end]

constexpr unsigned warps = 4;

// [kernel]
/// One CTA for each tile (128, 128) of D.
__global__ void by_descriptors(const __grid_constant__ AMap a_map, const __grid_constant__ BMap b_map,
                               MatrixView<float> d, unsigned k_steps)
{
    __shared__ ATile a;
    __shared__ BBlock b[2];
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

    if (warp == 0) {
        RingProducer producer(stage, published);
        RingConsumer consumer(stage, published);
        auto sum = RingProducer(sums, published).acquire();
        for (unsigned step = 0; step < k_steps; ++step) {
            producer.fill([&](auto& filling) {
                tma_load(a_map, a, filling, {step * tile_k, row});
                tma_load(b_map, b[0], filling, {column, step * tile_k});
                tma_load(b_map, b[1], filling, {column + block_n, step * tile_k});
            });
            multiply_slot(consumer, accumulator, [&](const auto&) { multiply(accumulator, a, b, step == 0); });
        }
        publish_after_mma(std::move(sum), accumulator, elect_one());
    }
    __syncwarp();
    auto sum = read_accumulators<tile>(sums, published, tensor_memory).wait();
    for (unsigned first = 0; first < tile; first += 16) {
        const auto values = sum.load_rows<16>(warp, first).wait();
        for (unsigned j = 0; j < 16; ++j) {
            d(row + threadIdx.x, column + first + j) = values[j];
        }
    }
    std::move(sum).release();
    std::move(tensor_memory).release(warp == 0);
}
// [end]

void print(const char* name, std::uint64_t bits)
{
    std::printf("%s 0x%016llx: leading offset %llu, stride offset %llu, swizzle code %llu\n", name,
                static_cast<unsigned long long>(bits), static_cast<unsigned long long>(bits >> 16 & 0x3FFF) * 16,
                static_cast<unsigned long long>(bits >> 32 & 0x3FFF) * 16, static_cast<unsigned long long>(bits >> 61));
}

// [main]
int main()
{
    print("A", tcgen05_descriptor<ALayout>(0).bits());  // of a tile at address 0
    print("B", tcgen05_descriptor<BLayout>(0).bits());
    std::printf("instruction 0x%08x\n", instruction.bits());
    return course::multiply_and_check("by_descriptors", 256, 256, 256, [](course::Product& p) {
        launch(by_descriptors, LaunchConfig(p.stream, {256 / tile, 256 / tile}, {32 * warps}), AMap::of(p.a()),
               BMap::of(p.b_by_k()), p.d(), 256 / tile_k);
    });
}
// [end]
