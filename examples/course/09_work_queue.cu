// Chapter 9: persistent pairs, and tiles from cluster launch control.
#include <tessera/device/accumulator.cuh>
#include <tessera/device/clc.cuh>
#include <tessera/device/cluster.cuh>
#include <tessera/device/mma.cuh>
#include <tessera/device/output_partition.cuh>
#include <tessera/device/tma.cuh>

#include "course/course.hpp"

using namespace tessera;

constexpr unsigned tile = 128;  // rows of a CTA; a cluster has two CTAs, one below the other
constexpr unsigned tile_k = 64;
constexpr unsigned half_tile = tile / 2;  // rows of B that each of the two loads
using AMap = TensorMap<bf16, Box<tile_k, tile>, Swizzle::b128>;
using ATile = SharedTile<bf16, Box<tile_k, tile>, Swizzle::b128>;
using BMap = TensorMap<bf16, Box<tile_k, half_tile>, Swizzle::b128>;
using BHalf = SharedTile<bf16, Box<tile_k, half_tile>, Swizzle::b128>;

constexpr unsigned mma_k = 16;
constexpr unsigned stages = 6;          // and so 160 KiB: an SM holds one CTA
constexpr unsigned epilogue_warps = 4;  // warps 0 to 3
constexpr unsigned load_warp = 4;
constexpr unsigned mma_warp = 5;
constexpr unsigned request_warp = 6;
constexpr unsigned threads = 7 * 32;

constexpr unsigned piece = 32;
using OutputMap = TensorMap<float, Box<piece, piece>, Swizzle::b128>;
using OutputPiece = SharedTile<float, Box<piece, piece>, Swizzle::b128>;

/// Stores the warp's 32 rows.
template <class Sum>
__device__ void store(const Sum& sum, OutputPiece& staged, const OutputMap& d_map, unsigned warp,
                      const OutputTile<tile, tile>& rows)
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
            tma_store(d_map, rows.part<piece, piece>(warp, first / piece), staged);
            tma_commit_stores();
            tma_wait_stores_read<0>();
        }
        __syncwarp();
    }
}

// [storage]
constexpr auto instruction =
    InstructionDescriptor::builder().shape<2 * tile, tile>().a<bf16>().b<bf16>().accumulate<float>().build();

constexpr unsigned accumulators = 2;  // one is stored while the other one fills
constexpr unsigned answers = 2;       // of cluster launch control, in flight
// Warps that read each answer: four and the load warp in each CTA, and in the first one the MMA warp and the one that asks.
constexpr unsigned readers = 2 * (epilogue_warps + 1) + 2;

struct Storage {
    ATile a[stages];
    BHalf b[stages];
    OutputPiece staged[epilogue_warps];
    RingBarriers<FilledByTma, FreedByTensorCore, stages, CtaGroup::pair> ring;
    RingBarriers<AccumulatorFull, AccumulatorEmpty, accumulators, CtaGroup::pair> sums;
    ClcStorage<answers> clc;
    TmemSlot slot;
};
using Ring = decltype(Storage::ring);
using Queue = ClcWorkQueue<2, answers>;
// [end]

// [kernel]
/// The grid has one pair of CTAs for each tile (256, 128) of D. Those that run take over the tiles of those that wait.
__global__ void __cluster_dims__(2, 1, 1)
    by_work_queue(const __grid_constant__ AMap a_map, const __grid_constant__ BMap b_map,
                  const __grid_constant__ OutputMap d_map, OutputPartition<2 * tile, tile> partition, unsigned k_steps)
{
    extern __shared__ __align__(1024) std::byte memory[];
    auto& storage = *reinterpret_cast<Storage*>(memory);
    const unsigned warp = threadIdx.x / 32;
    const ClusterGrid cluster(2, 1);
    const auto published = publish_barriers_to_cluster([&](const BarrierInitializer& by) {
        storage.ring.initialize(by);
        storage.sums.initialize(by, {.producers = 1, .consumers = 2 * epilogue_warps});
        storage.clc.initialize(by, readers);
    });
    const auto both = published.ready(cluster.my_column());
    auto tensor_memory =
        Tmem<Unallocated, accumulators * tile, CtaGroup::pair>(storage.slot).allocate(warp == mma_warp, published);

    Queue queue(storage.clc, published);
    if (warp == load_warp) {
        RingProducer<Ring> producer(storage.ring, published);
        for (WorkItem work = queue.first(); work; work = queue.next_of_warp()) {
            const auto rows = partition.tile(work).part<tile, tile>(cluster.row(), 0);
            for (unsigned step = 0; step < k_steps; ++step) {
                producer.fill([&](auto& slot) {
                    const auto k = step * tile_k;
                    tma_load(a_map, storage.a[slot.index()], slot, {k, rows.first_row()});
                    tma_load(b_map, storage.b[slot.index()], slot,
                             {k, rows.first_column() + half_tile * cluster.row()});
                });
            }
        }
        std::move(producer).drain();
    } else if (warp == mma_warp && cluster.row() == 0) {
        RingProducer sums(storage.sums, published);
        RingConsumer<Ring> consumer(storage.ring, published);
        for (WorkItem work = queue.first(); work; work = queue.next_of_warp()) {
            auto sum = sums.acquire();  // when the epilogue has read what was there
            const auto accumulator = tensor_memory.accumulator<tile>(sum.index());
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
        }
    } else if (warp == request_warp && cluster.row() == 0) {
        ClcRequester<2, answers> requester(storage.clc, published);
        do {
            requester.request();
        } while (queue.next_of_warp());
    } else if (warp < epilogue_warps) {
        auto sums = read_accumulators<tile>(storage.sums, published, tensor_memory);
        for (WorkItem work = queue.first(); work; work = queue.next_of_warp()) {
            auto sum = sums.wait();
            store(sum, storage.staged[warp], d_map, warp, partition.tile(work).part<tile, tile>(cluster.row(), 0));
            std::move(sum).release();
        }
    }
    __syncwarp();
    const PairFinished finished = tensor_memory.finish_pair();
    std::move(tensor_memory).release(warp == mma_warp, finished);
}
// [end]

// [main]
int main()
{
    constexpr unsigned m = 2048, n = 3072, k = 128;  // 192 tiles: more than pairs that run at a time
    return course::multiply_and_check("by_work_queue", m, n, k, [](course::Product& p) {
        const OutputPartition<2 * tile, tile> partition(m, n, 4);
        launch(
            by_work_queue,
            LaunchConfig(p.stream, {2 * (m / (2 * tile)) * (n / tile)}, {threads}).shared_memory_bytes(sizeof(Storage)),
            AMap::of(p.a()), BMap::of(p.b()), OutputMap::of(p.d()), partition, k / tile_k);
    });
}
// [end]
