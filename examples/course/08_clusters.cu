// Chapter 8: clusters. Two CTAs share B: first by multicast, then as a pair that one instruction serves.
#include <tessera/device/accumulator.cuh>
#include <tessera/device/cluster.cuh>
#include <tessera/device/mma.cuh>
#include <tessera/device/tma.cuh>

#include "course/course.hpp"

using namespace tessera;

// [types]
constexpr unsigned tile = 128;  // rows of a CTA; a cluster has two CTAs, one below the other
constexpr unsigned tile_k = 64;
constexpr unsigned half_tile = tile / 2;  // rows of B that each of the two loads
using AMap = TensorMap<bf16, Box<tile_k, tile>, Swizzle::b128>;
using ATile = SharedTile<bf16, Box<tile_k, tile>, Swizzle::b128>;
using BMap = TensorMap<bf16, Box<tile_k, half_tile>, Swizzle::b128>;
using BHalf = SharedTile<bf16, Box<tile_k, half_tile>, Swizzle::b128>;
// [end]

constexpr unsigned mma_k = 16;
constexpr unsigned stages = 3;
constexpr unsigned epilogue_warps = 4;  // warps 0 to 3
constexpr unsigned load_warp = 4;
constexpr unsigned mma_warp = 5;
constexpr unsigned threads = 6 * 32;

constexpr unsigned piece = 32;
using OutputMap = TensorMap<float, Box<piece, piece>, Swizzle::b128>;
using OutputPiece = SharedTile<float, Box<piece, piece>, Swizzle::b128>;

/// Stores the warp's 32 rows.
template <class Sum>
__device__ void store(const Sum& sum, OutputPiece& staged, const OutputMap& d_map, unsigned warp, unsigned row,
                      unsigned column)
{
    const unsigned lane = threadIdx.x % 32;
    for (unsigned first = 0; first < tile; first += piece) {
        const auto values = sum.template load_rows<piece>(warp, first).wait();
        for (unsigned j = 0; j < piece; j += 4) {
            staged.vector<float4>(lane, j) = make_float4(values[j], values[j + 1], values[j + 2], values[j + 3]);
        }
        make_visible_to_tma();
        __syncwarp();
        if (lane == 0) {
            tma_store(d_map, {column + first, row + 32 * warp}, staged);
            tma_commit_stores();
            tma_wait_stores_read<0>();
        }
        __syncwarp();
    }
}

// [multicast]
namespace multicast {

using BLayout = SharedLayout<Major::k, Swizzle::b128, tile, tile_k, sizeof(bf16)>;  // both halves
constexpr auto instruction =
    InstructionDescriptor::builder().shape<tile, tile>().a<bf16>().b<bf16>().accumulate<float>().build();

struct Storage {
    ATile a[stages];
    BHalf b[stages][2];
    OutputPiece staged[epilogue_warps];
    RingBarriers<FilledByTma, FreedByTensorCore, stages> ring;
    RingBarriers<AccumulatorFull, AccumulatorEmpty, 1> sums;
    TmemSlot slot;
};
using Ring = decltype(Storage::ring);

/// One cluster of two CTAs for each tile (256, 128) of D.
__global__ void __cluster_dims__(2, 1, 1)
    by_multicast(const __grid_constant__ AMap a_map, const __grid_constant__ BMap b_map,
                 const __grid_constant__ OutputMap d_map, unsigned k_steps)
{
    extern __shared__ __align__(1024) std::byte memory[];
    auto& storage = *reinterpret_cast<Storage*>(memory);
    const unsigned warp = threadIdx.x / 32;
    const ClusterGrid cluster(2, 1);
    const unsigned row = blockIdx.x * tile, column = blockIdx.y * tile;
    const auto published = publish_barriers_to_cluster([&](const BarrierInitializer& by) {
        storage.ring.initialize(by, {.producers = 1, .consumers = 2});  // both CTAs have read what both loaded
        storage.sums.initialize(by, {.producers = 1, .consumers = epilogue_warps});
    });
    const auto both = published.ready(cluster.my_column());
    auto tensor_memory = Tmem<Unallocated, tile, CtaGroup::one>(storage.slot).allocate(warp == mma_warp);
    const auto accumulator = tensor_memory.accumulator<tile>(0);

    if (warp == load_warp) {
        RingProducer<Ring> producer(storage.ring, published);
        for (unsigned step = 0; step < k_steps; ++step) {
            producer.fill([&](auto& slot) {
                const auto k = step * tile_k;
                tma_load(a_map, storage.a[slot.index()], slot, {k, row});
                tma_load_multicast(b_map, storage.b[slot.index()][cluster.row()], slot,
                                   {k, column + half_tile * cluster.row()}, both);
            });
        }
        std::move(producer).drain();  // the peer's tensor core has read what we sent, and frees no stage of ours later
    } else if (warp == mma_warp) {
        auto sum = RingProducer(storage.sums, published).acquire();
        RingConsumer<Ring> consumer(storage.ring, published);
        for (unsigned step = 0; step < k_steps; ++step) {
            const auto multiply = [&](const auto& slot) {
                const auto a = operand_descriptor<Major::k>(storage.a[slot.index()]);
                const auto b = tcgen05_descriptor<BLayout>(
                    static_cast<std::uint32_t>(__cvta_generic_to_shared(&storage.b[slot.index()])));
                for (unsigned k = 0; k < tile_k; k += mma_k) {
                    mma(accumulator, a.from_k(k), b.from_k(k), instruction,
                        step + k == 0 ? Accumulate::overwrite : Accumulate::add);
                }
            };
            multiply_slot(consumer, accumulator, multiply, both);  // frees the stage in both CTAs
        }
        publish_after_mma(std::move(sum), accumulator, elect_one());
    } else {
        auto sum = read_accumulators<tile>(storage.sums, published, tensor_memory).wait();
        store(sum, storage.staged[warp], d_map, warp, row, column);
        std::move(sum).release();
    }
    __syncwarp();
    std::move(tensor_memory).release(warp == mma_warp);
}

}  // namespace multicast
// [end]

// [pair]
namespace pair {

constexpr auto instruction =
    InstructionDescriptor::builder().shape<2 * tile, tile>().a<bf16>().b<bf16>().accumulate<float>().build();

struct Storage {
    ATile a[stages];
    BHalf b[stages];
    OutputPiece staged[epilogue_warps];
    RingBarriers<FilledByTma, FreedByTensorCore, stages, CtaGroup::pair> ring;
    RingBarriers<AccumulatorFull, AccumulatorEmpty, 1, CtaGroup::pair> sums;
    TmemSlot slot;
};
using Ring = decltype(Storage::ring);

/// One pair of CTAs for each tile (256, 128) of D.
__global__ void __cluster_dims__(2, 1, 1)
    by_pair(const __grid_constant__ AMap a_map, const __grid_constant__ BMap b_map,
            const __grid_constant__ OutputMap d_map, unsigned k_steps)
{
    extern __shared__ __align__(1024) std::byte memory[];
    auto& storage = *reinterpret_cast<Storage*>(memory);
    const unsigned warp = threadIdx.x / 32;
    const ClusterGrid cluster(2, 1);
    const unsigned row = blockIdx.x * tile, column = blockIdx.y * tile;
    const auto published = publish_barriers_to_cluster([&](const BarrierInitializer& by) {
        storage.ring.initialize(by);
        storage.sums.initialize(by, {.producers = 1, .consumers = 2 * epilogue_warps});
    });
    const auto both = published.ready(cluster.my_column());
    auto tensor_memory = Tmem<Unallocated, tile, CtaGroup::pair>(storage.slot).allocate(warp == mma_warp, published);
    const auto accumulator = tensor_memory.accumulator<tile>(0);

    if (warp == load_warp) {  // both CTAs load, for the barrier of the first
        RingProducer<Ring> producer(storage.ring, published);
        for (unsigned step = 0; step < k_steps; ++step) {
            producer.fill([&](auto& slot) {
                tma_load(a_map, storage.a[slot.index()], slot, {step * tile_k, row});
                tma_load(b_map, storage.b[slot.index()], slot, {step * tile_k, column + half_tile * cluster.row()});
            });
        }
        std::move(producer).drain();
    } else if (warp == mma_warp && cluster.row() == 0) {  // the first CTA multiplies for both
        auto sum = RingProducer(storage.sums, published).acquire();
        RingConsumer<Ring> consumer(storage.ring, published);
        for (unsigned step = 0; step < k_steps; ++step) {
            const auto multiply = [&](const auto& slot) {
                const auto a = operand_descriptor<Major::k>(storage.a[slot.index()]);
                const auto b = operand_descriptor<Major::k>(storage.b[slot.index()]);
                for (unsigned k = 0; k < tile_k; k += mma_k) {
                    mma(accumulator, a.from_k(k), b.from_k(k), instruction,
                        step + k == 0 ? Accumulate::overwrite : Accumulate::add);
                }
            };
            multiply_slot(consumer, accumulator, multiply, both);
        }
        publish_after_mma(std::move(sum), accumulator, elect_one(), both);
    } else if (warp < epilogue_warps) {
        auto sum = read_accumulators<tile>(storage.sums, published, tensor_memory).wait();
        store(sum, storage.staged[warp], d_map, warp, row, column);
        std::move(sum).release();
    }
    __syncwarp();
    const PairFinished finished = tensor_memory.finish_pair();
    std::move(tensor_memory).release(warp == mma_warp, finished);
}

}  // namespace pair
// [end]

// [main]
int main()
{
    const auto run = [](const char* name, auto kernel, std::size_t shared) {
        return course::multiply_and_check(name, 256, 256, 256, [&](course::Product& p) {
            launch(kernel, LaunchConfig(p.stream, {256 / tile, 256 / tile}, {threads}).shared_memory_bytes(shared),
                   AMap::of(p.a()), BMap::of(p.b()), OutputMap::of(p.d()), 256 / tile_k);
        });
    };
    const int status = run("by_multicast", multicast::by_multicast, sizeof(multicast::Storage));
    return status != 0 ? status : run("by_pair", pair::by_pair, sizeof(pair::Storage));
}
// [end]
