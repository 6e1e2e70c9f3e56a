#pragma once

// A persistent Blackwell GEMM, D = A * B^T in bf16. Pairs of CTAs take tiles by cluster launch control. One warp loads,
// one multiplies into two accumulators in turn, one requests more work, four store through shared memory with TMA. Once
// right and once with each planted fault.

#include <cstdint>

#ifdef __CUDACC__
#include "device_ptx.cuh"
#endif

namespace tessera_emulator_test {

enum class PersistentFault {
    none,
    no_proxy_fence,            // staged rows are not made visible to the tensor copy that stores them
    staging_reused_early,      // no wait until the store has read the earlier rows
    accumulator_reused_early,  // the next tile's MMA does not wait for the epilogue
    no_wait_for_response,      // reads the response of launch control before it has arrived
    response_overwritten,      // requests again before all have read the response
    response_not_expected,     // the barrier does not expect the 16 bytes of the response
    last,
};

namespace persistent {

constexpr int stages = 3;
constexpr int block_k = 64;
constexpr int tile_m = 256;  // of the pair
constexpr int tile_n = 128;
constexpr int a_bytes = 128 * block_k * 2;
constexpr int b_bytes = 64 * block_k * 2;  // each CTA loads half of the columns
constexpr int stage_bytes = a_bytes + b_bytes;
constexpr int accumulators = 2;
constexpr int store_rows = 32;  // of a warp
constexpr int store_columns = 64;
constexpr int store_bytes = store_rows * store_columns * 2;
constexpr int staging_bytes = 4 * 2 * store_bytes;  // two buffers for each of four warps
constexpr int threads = 256;
constexpr int shared_bytes = stages * stage_bytes + staging_bytes + 1024 + 256;
/// Readers of an answer of launch control: the loader and four storing warps of both CTAs, the MMA warp and the
/// requesting warp of the first.
constexpr int readers = 12;

}  // namespace persistent

#ifdef __CUDACC__

struct TilePlace {
    int x, y;
    bool valid;
};

/// The answer of cluster launch control at `response`.
__device__ inline TilePlace read_response(std::uint32_t response)
{
    std::uint32_t x, y, canceled;
    asm volatile(
        "{\n.reg .b128 answer;\n.reg .pred p;\n"
        "ld.shared.b128 answer, [%3];\n"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer;\n"
        "selp.u32 %2, 1, 0, p;\n"
        "mov.u32 %0, 0;\nmov.u32 %1, 0;\n"
        "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, _, _}, answer;\n}"
        : "=r"(x), "=r"(y), "=r"(canceled)
        : "r"(response)
        : "memory");
    return {static_cast<int>(x), static_cast<int>(y), canceled != 0};
}

__device__ inline void ask_for_work(std::uint32_t response, std::uint32_t barrier)
{
    asm volatile(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
        "[%0], [%1];" ::"r"(response),
        "r"(barrier)
        : "memory");
}

/// m is a multiple of 256, n of 128, k of 64; the grid is (m / 128, n / 128) in clusters of (2, 1).
template <PersistentFault fault>
__global__ void __launch_bounds__(persistent::threads)
    persistent_gemm(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                    const __grid_constant__ CUtensorMap d_map, int k)
{
    using namespace persistent;
    // bf16 x bf16 -> f32, both K-major
    constexpr std::uint32_t instruction = 1u << 4 | 1u << 7 | 1u << 10 | (tile_n >> 3) << 17 | (tile_m >> 4) << 24;
    constexpr int columns = accumulators * tile_n;
    extern __shared__ std::uint8_t dynamic[];
    const std::uint32_t base = shared_address(dynamic);
    const std::uint32_t first_stage = (base + 1023) & ~1023u;
    const std::uint32_t staging = first_stage + stages * stage_bytes;
    const std::uint32_t response = base + stages * stage_bytes + staging_bytes + 1024;
    const std::uint32_t barriers = response + 16;
    const auto full = [&](int s) { return barriers + 8 * s; };
    const auto empty = [&](int s) { return barriers + 8 * (stages + s); };
    const auto computed = [&](int i) { return barriers + 8 * (2 * stages + i); };
    const auto stored = [&](int i) { return barriers + 8 * (2 * stages + accumulators + i); };
    const std::uint32_t answered = barriers + 8 * (2 * stages + 2 * accumulators);
    const std::uint32_t asked = answered + 8;
    const std::uint32_t address_slot = asked + 8;

    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int rank = cluster_rank();
    const int steps = k / block_k;

    if (warp == 0 && lane == 0) {
        for (int s = 0; s < stages; ++s) {
            barrier_init(full(s), 1);
            barrier_init(empty(s), 1);
        }
        for (int i = 0; i < accumulators; ++i) {
            barrier_init(computed(i), 1);
            barrier_init(stored(i), 8);
        }
        barrier_init(answered, 1);
        barrier_init(asked, readers);
        fence_barrier_init();
    }
    cluster_sync();
    if (warp == 1) {
        allocate<2>(address_slot, columns);
        relinquish<2>();
    }
    fence_before_sync();
    cluster_sync();
    fence_after_sync();
    const std::uint32_t accumulator = load_shared(address_slot);

    TilePlace tile{static_cast<int>(blockIdx.x) - rank, static_cast<int>(blockIdx.y), true};
    // Takes the next tile when its answer is there, and tells the asker so.
    const auto next_tile = [&](int round) {
        if constexpr (fault != PersistentFault::no_wait_for_response) {
            barrier_wait_cluster(answered, round & 1);
        }
        tile = read_response(response);
        fence_async_shared();
        barrier_arrive_cluster(in_cta(asked, 0));
    };

    if (warp == 0 && lane == 0) {  // load warp
        int count = 0;
        for (int round = 0; tile.valid; ++round) {
            for (int step = 0; step < steps; ++step, ++count) {
                const int s = count % stages;
                barrier_wait_cluster(empty(s), (count / stages & 1) ^ 1);
                if (rank == 0) {
                    barrier_expect(full(s), 2 * stage_bytes);
                }
                const std::uint32_t stage = first_stage + s * stage_bytes;
                load_box<2>(stage, &a_map, step * block_k, (tile.x + rank) * 128, full(s));
                load_box<2>(stage + a_bytes, &b_map, step * block_k, tile.y * tile_n + rank * 64, full(s));
            }
            next_tile(round);
        }
        for (int i = 0; i < stages; ++i, ++count) {  // nobody leaves while a commit may still arrive
            barrier_wait_cluster(empty(count % stages), (count / stages & 1) ^ 1);
        }
    } else if (warp == 1 && lane == 0 && rank == 0) {  // MMA warp
        int count = 0;
        for (int round = 0; tile.valid; ++round) {
            const int buffer = round % accumulators;
            if constexpr (fault != PersistentFault::accumulator_reused_early) {
                barrier_wait_cluster(stored(buffer), (round / accumulators & 1) ^ 1);
            }
            fence_after_sync();
            for (int step = 0; step < steps; ++step, ++count) {
                const int s = count % stages;
                barrier_wait_cluster(full(s), count / stages & 1);
                fence_after_sync();
                const std::uint32_t stage = first_stage + s * stage_bytes;
                for (int i = 0; i < block_k / 16; ++i) {
                    multiply<2>(accumulator + buffer * tile_n, blackwell_descriptor(stage + 32 * i),
                                blackwell_descriptor(stage + a_bytes + 32 * i), instruction, step > 0 || i > 0);
                }
                commit<2>(empty(s), 0b11);
            }
            commit<2>(computed(buffer), 0b11);
            next_tile(round);
        }
    } else if (warp == 2 && lane == 0 && rank == 0) {  // requesting warp
        for (int round = 0; tile.valid; ++round) {
            if constexpr (fault != PersistentFault::response_overwritten) {
                barrier_wait_cluster(asked, (round & 1) ^ 1);
            }
            for (int cta = 0; cta < 2; ++cta) {
                if constexpr (fault == PersistentFault::response_not_expected) {
                    barrier_arrive_cluster(in_cta(answered, cta));
                } else {
                    barrier_expect_cluster(in_cta(answered, cta), 16);
                }
            }
            ask_for_work(response, answered);
            next_tile(round);
        }
    } else if (warp >= 4) {  // store warps
        const int quarter = warp % 4;
        int stores = 0;
        for (int round = 0; tile.valid; ++round) {
            const int buffer = round % accumulators;
            // Taken before this tile is stored, so that the others may go two tiles ahead.
            barrier_wait_cluster(answered, round & 1);
            const TilePlace next = read_response(response);
            fence_async_shared();
            __syncwarp();
            if (lane == 0) {
                barrier_arrive_cluster(in_cta(asked, 0));
            }
            barrier_wait_cluster(computed(buffer), round / accumulators & 1);
            fence_after_sync();
            for (int column = 0; column < tile_n; column += store_columns, ++stores) {
                const std::uint32_t rows = staging + (quarter * 2 + stores % 2) * store_bytes;
                if (fault != PersistentFault::staging_reused_early && lane == 0) {
                    wait_for_sources<1>();
                }
                __syncwarp();
                for (int part = 0; part < store_columns; part += 16) {
                    std::uint32_t r[16];
                    load_columns<true>(
                        accumulator + (static_cast<std::uint32_t>(quarter) << 21) + buffer * tile_n + column + part, r);
                    for (int half = 0; half < 2; ++half) {
                        const std::uint32_t* from = r + 8 * half;
                        const std::uint32_t packed[4] = {pack(from[0], from[1]), pack(from[2], from[3]),
                                                         pack(from[4], from[5]), pack(from[6], from[7])};
                        const int chunk = part / 8 + half;
                        store_shared(rows + lane * 128 + ((chunk ^ (lane & 7)) << 4), packed);
                    }
                }
                if constexpr (fault != PersistentFault::no_proxy_fence) {
                    fence_async_shared();
                }
                __syncwarp();
                if (lane == 0) {
                    store_box(&d_map, tile.y * tile_n + column, (tile.x + rank) * 128 + quarter * store_rows, rows);
                    commit_stores();
                }
            }
            fence_before_sync();
            __syncwarp();
            if (lane == 0) {
                barrier_arrive_cluster(in_cta(stored(buffer), 0));
            }
            tile = next;
        }
        if (lane == 0) {
            wait_for_stores();
        }
    }
    __syncwarp();
    cluster_sync();
    if (warp == 1) {
        fence_after_sync();
        deallocate<2>(accumulator, columns);
    }
}

#endif  // __CUDACC__

}  // namespace tessera_emulator_test
