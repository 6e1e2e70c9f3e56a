// Capstone: your own GEMM, for any M and K, and any N that is a multiple of 4. Beside it, the library's.
#include <tessera/device/accumulator.cuh>
#include <tessera/device/clc.cuh>
#include <tessera/device/cluster.cuh>
#include <tessera/device/mma.cuh>
#include <tessera/device/output_partition.cuh>
#include <tessera/device/tma.cuh>

#include <array>

#include "course/course.hpp"

using namespace tessera;

// [tile]
constexpr unsigned wide = 128;  // columns of a tile of D
constexpr unsigned tile = 128;  // rows of a CTA; a cluster has two CTAs, one below the other
constexpr unsigned tile_k = 64;
constexpr unsigned half_tile = wide / 2;  // rows of B that each of the two loads
// [end]
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
                      const OutputTile<tile, wide>& rows)
{
    const unsigned lane = threadIdx.x % 32;
    for (unsigned first = 0; first < wide; first += piece) {
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

constexpr auto instruction =
    InstructionDescriptor::builder().shape<2 * tile, wide>().a<bf16>().b<bf16>().accumulate<float>().build();

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

/// The grid has one pair of CTAs for each tile (256, 128) of D. Those that run take over the tiles of those that wait.
__global__ void __cluster_dims__(2, 1, 1)
    my_gemm(const __grid_constant__ AMap a_map, const __grid_constant__ BMap b_map,
            const __grid_constant__ OutputMap d_map, OutputPartition<2 * tile, wide> partition, unsigned k_steps)
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
        Tmem<Unallocated, accumulators * wide, CtaGroup::pair>(storage.slot).allocate(warp == mma_warp, published);

    Queue queue(storage.clc, published);
    if (warp == load_warp) {
        RingProducer<Ring> producer(storage.ring, published);
        for (WorkItem work = queue.first(); work; work = queue.next_of_warp()) {
            const auto rows = partition.tile(work).part<tile, wide>(cluster.row(), 0);
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
            const auto accumulator = tensor_memory.accumulator<wide>(sum.index());
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
        auto sums = read_accumulators<wide>(storage.sums, published, tensor_memory);
        for (WorkItem work = queue.first(); work; work = queue.next_of_warp()) {
            auto sum = sums.wait();
            store(sum, storage.staged[warp], d_map, warp, partition.tile(work).part<tile, wide>(cluster.row(), 0));
            std::move(sum).release();
        }
    }
    __syncwarp();
    const PairFinished finished = tensor_memory.finish_pair();
    std::move(tensor_memory).release(warp == mma_warp, finished);
}

// [host]
unsigned parts(std::int64_t extent, unsigned part) { return static_cast<unsigned>((extent + part - 1) / part); }

/// D = A * B^T on your kernel.
void multiply(course::Product& p)
{
    const auto m = p.a().rows(), n = p.b().rows(), k = p.a().columns();
    const OutputPartition<2 * tile, wide> partition(static_cast<unsigned>(m), static_cast<unsigned>(n), 4);
    launch(my_gemm,
           LaunchConfig(p.stream, {2 * parts(m, 2 * tile) * parts(n, wide)}, {threads})
               .shared_memory_bytes(sizeof(Storage)),
           AMap::of(p.a()), BMap::of(p.b()), OutputMap::of(p.d()), partition, parts(k, tile_k));
}

/// Prints what the tiles of a product need at least: each brings its rows of A and of B once, each MMA is of 256 rows.
void print_paper(std::int64_t m, std::int64_t n, std::int64_t k)
{
    const unsigned tiles = parts(m, 2 * tile) * parts(n, wide), steps = parts(k, tile_k);
    std::printf("on paper: %u MMAs, %u bytes to shared memory\n", tiles * steps * (tile_k / mma_k),
                tiles * steps * (2 * tile + wide) * tile_k * 2);
}
// [end]

// [main]
int main()
{
    for (const auto& [m, n, k] : {std::array{1, 4, 8}, {200, 136, 72}, {257, 388, 328}, {2048, 2048, 128}}) {
        const int status =
            course::multiply_and_check("my_gemm", std::size_t(m), std::size_t(n), std::size_t(k), multiply);
        if (status != 0) {
            return status;
        }
    }
    print_paper(2048, 2048, 128);
    return course::multiply_and_check("Gemm::launch", 2048, 2048, 128, [](course::Product& p) {
        Gemm::launch(p.stream, p.a(), p.b().transposed(), p.d());
    });
}
// [end]
