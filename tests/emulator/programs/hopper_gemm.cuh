#pragma once

// A Hopper GEMM, D = A * B^T in bf16 with f32 sums. Clusters of two CTAs, one above the other, share their part of B by
// TMA multicast. One warpgroup produces, two multiply with wgmma; registers move from the producer to the consumers.
// Once right and once with each planted fault.

#include <cstdint>

#ifdef __CUDACC__
#include "device_ptx.cuh"
#endif

namespace tessera_emulator_test {

enum class HopperFault {
    none,
    multicast_before_init,    // no cluster barrier between the barriers' initialization and the first multicast
    multicast_before_arming,  // the CTA's own expect_tx is missing: bytes arrive at a barrier without an expectation
    mask_beyond_cluster,      // multicast to CTAs that do not exist
    mask_of_one,              // multicast only to the issuer, while both expect the bytes
    exit_during_multicast,    // the second CTA exits without waiting for the peer's multicast
    no_last_barrier,          // no wait for the peer's last arrivals
    peer_not_asked,           // only the CTA's own consumers released the stage, not the peer's
    no_wgmma_fence,
    no_wgmma_wait,         // accumulators are used while wgmma writes them
    released_early,        // the stage is released while wgmma reads it
    blackwell_descriptor,  // version and swizzle code of another generation
    last,
};

namespace hopper {

constexpr int stages = 3;
constexpr int block_k = 64;
constexpr int tile_m = 128;  // 64 rows for each consumer group
constexpr int tile_n = 64;   // 32 rows of B loaded by each CTA of the cluster
constexpr int a_bytes = tile_m * block_k * 2;
constexpr int b_bytes = tile_n * block_k * 2;
constexpr int stage_bytes = a_bytes + b_bytes;
constexpr int threads = 384;
constexpr int shared_bytes = stages * stage_bytes + 1024 + 256;

}  // namespace hopper

#ifdef __CUDACC__

__device__ inline void wgmma_64x64x16(float (&d)[32], std::uint64_t a, std::uint64_t b, bool accumulate)
{
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
        "%23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b), "r"(static_cast<int>(accumulate))
        : "memory");
}

/// m is a multiple of 256, n of 64, k of 64; the grid is (m / 128, n / 64) in clusters of (2, 1).
template <HopperFault fault>
__global__ void __launch_bounds__(hopper::threads)
    hopper_gemm(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, __nv_bfloat16* d,
                int n, int k)
{
    using namespace hopper;
    extern __shared__ std::uint8_t dynamic[];
    const std::uint32_t base = shared_address(dynamic);
    const std::uint32_t first_stage = (base + 1023) & ~1023u;
    const std::uint32_t barriers = base + stages * stage_bytes + 1024;
    const auto full = [&](int s) { return barriers + 8 * s; };
    const auto empty = [&](int s) { return barriers + 8 * (stages + s); };
    const auto matrix_descriptor = [](std::uint32_t address) {
        return fault == HopperFault::blackwell_descriptor ? blackwell_descriptor(address) : hopper_descriptor(address);
    };

    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int rank = cluster_rank();
    const int m_base = static_cast<int>(blockIdx.x) * tile_m;
    const int n_base = static_cast<int>(blockIdx.y) * tile_n;
    const int steps = k / block_k;

    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) {
            barrier_init(full(s), 1);
            barrier_init(empty(s), fault == HopperFault::peer_not_asked ? 2 : 4);  // both groups of both CTAs
        }
        fence_barrier_init();
    }
    if constexpr (fault == HopperFault::multicast_before_init) {
        __syncthreads();
    } else {
        cluster_sync();
    }

    if (warp < 4) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (warp == 0 && lane == 0) {
            for (int step = 0; step < steps; ++step) {
                const int s = step % stages;
                barrier_wait_cluster(empty(s), (step / stages & 1) ^ 1);
                if constexpr (fault == HopperFault::multicast_before_arming) {
                    barrier_arrive(full(s));
                } else {
                    barrier_expect(full(s), stage_bytes);
                }
                const std::uint32_t stage = first_stage + s * stage_bytes;
                load_box<1>(stage, &a_map, step * block_k, m_base, full(s));
                const auto mask = static_cast<std::uint16_t>(fault == HopperFault::mask_beyond_cluster ? 0b111
                                                             : fault == HopperFault::mask_of_one       ? 1 << rank
                                                                                                       : 0b11);
                load_box_multicast(stage + a_bytes + rank * (b_bytes / 2), &b_map, step * block_k,
                                   n_base + rank * (tile_n / 2), full(s), mask);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int group = warp / 4 - 1;
        float sums[32] = {};
        const int trips = fault == HopperFault::exit_during_multicast && rank == 1 ? 0 : steps;
        for (int step = 0; step < trips; ++step) {
            const int s = step % stages;
            barrier_wait(full(s), step / stages & 1);
            const std::uint32_t stage = first_stage + s * stage_bytes;
            if constexpr (fault != HopperFault::no_wgmma_fence) {
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            }
            for (int i = 0; i < block_k / 16; ++i) {
                wgmma_64x64x16(sums, matrix_descriptor(stage + group * (a_bytes / 2) + 32 * i),
                               matrix_descriptor(stage + a_bytes + 32 * i), step > 0 || i > 0);
            }
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            if constexpr (fault != HopperFault::no_wgmma_wait && fault != HopperFault::released_early) {
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            }
            if (warp % 4 == 0 && lane < 2) {  // the peer writes into this stage, too
                if (fault != HopperFault::peer_not_asked || lane == rank) {
                    barrier_arrive_cluster(in_cta(empty(s), lane));
                }
            }
            if constexpr (fault == HopperFault::released_early) {
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            }
        }
        const int row = m_base + 64 * group + 16 * (warp % 4) + lane / 4;
        for (int i = 0; i < 32; i += 2) {  // pairs of columns; rows 8 apart
            const int column = n_base + i / 4 * 8 + lane % 4 * 2;
            *reinterpret_cast<__nv_bfloat162*>(d + static_cast<std::int64_t>(row + i / 2 % 2 * 8) * n + column) =
                __floats2bfloat162_rn(sums[i], sums[i + 1]);
        }
    }
    if constexpr (fault != HopperFault::exit_during_multicast && fault != HopperFault::no_last_barrier) {
        __syncwarp();
        cluster_sync();  // the peer's arrivals at the barriers of this CTA are to find it
    }
}

#endif  // __CUDACC__

}  // namespace tessera_emulator_test
