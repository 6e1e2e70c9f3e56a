// Chapter 7: the epilogue. D = relu(A * B^T + bias), through shared memory and TMA.
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

constexpr unsigned stages = 3;
constexpr unsigned epilogue_warps = 4;  // warps 0 to 3
constexpr unsigned load_warp = 4;
constexpr unsigned mma_warp = 5;
constexpr unsigned threads = 6 * 32;

// [storage]
// A warp stores its 32 rows in pieces of 32 columns.
constexpr unsigned piece = 32;
using OutputMap = TensorMap<float, Box<piece, piece>, Swizzle::b128>;
using OutputPiece = SharedTile<float, Box<piece, piece>, Swizzle::b128>;

struct Storage {
    OperandTile a[stages];
    OperandTile b[stages];
    OutputPiece staged[epilogue_warps];
    RingBarriers<FilledByTma, FreedByTensorCore, stages> ring;
    RingBarriers<AccumulatorFull, AccumulatorEmpty, 1> sums;
    TmemSlot slot;
};
using Ring = decltype(Storage::ring);
// [end]

// [kernel]
/// Stores relu(sum + bias) of the warp's 32 rows.
template <class Sum>
__device__ void store(const Sum& sum, OutputPiece& staged, const OutputMap& d_map, DeviceSpan<const float> bias,
                      unsigned warp, unsigned row, unsigned column)
{
    const unsigned lane = threadIdx.x % 32;
    for (unsigned first = 0; first < tile; first += piece) {
        const auto values = sum.template load_rows<piece>(warp, first).wait();
        for (unsigned j = 0; j < piece; j += 4) {  // 16 bytes, which the swizzle keeps together
            float four[4];
            for (unsigned i = 0; i < 4; ++i) {
                four[i] = fmaxf(values[j + i] + bias[column + first + j + i], 0.0F);
            }
            staged.vector<float4>(lane, j) = make_float4(four[0], four[1], four[2], four[3]);
        }
        make_visible_to_tma();
        __syncwarp();
        if (lane == 0) {
            tma_store(d_map, {column + first, row + 32 * warp}, staged);
            tma_commit_stores();
            tma_wait_stores_read<0>();
        }
        __syncwarp();  // now the piece may be written again
    }
}
// [end]

// [roles]
/// One CTA for each tile (128, 128) of D.
__global__ void by_epilogue(const __grid_constant__ OperandMap a_map, const __grid_constant__ OperandMap b_map,
                            const __grid_constant__ OutputMap d_map, DeviceSpan<const float> bias, unsigned k_steps)
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
        store(sum, storage.staged[warp], d_map, bias, warp, row, column);
        std::move(sum).release();
    }
    __syncwarp();
    std::move(tensor_memory).release(warp == mma_warp);
}
// [end]

// [main]
int main()
{
    std::vector<float> bias(256);
    for (std::size_t j = 0; j < bias.size(); ++j) {
        bias[j] = static_cast<float>(j % 16) - 8.0F;
    }
    return course::multiply_and_check(
        "by_epilogue", 256, 256, 256,
        [&](course::Product& p) {
            const auto device_bias = DeviceBuffer<float>::from_host(p.stream, bias);
            launch(by_epilogue,
                   LaunchConfig(p.stream, {256 / tile, 256 / tile}, {threads}).shared_memory_bytes(sizeof(Storage)),
                   OperandMap::of(p.a()), OperandMap::of(p.b()), OutputMap::of(p.d()), device_bias.span(),
                   256 / tile_k);
        },
        [&](float sum, std::size_t column) { return std::fmax(sum + bias[column], 0.0F); });
}
// [end]
