#pragma once

// A plain Blackwell GEMM, D = A * B^T in bf16 with f32 sums, in bare PTX: one warp loads with TMA, one issues
// tcgen05.mma, four store. The emulated device's tests and benchmark run it, once right and once with each planted
// fault.

#ifdef __CUDACC__
#include "device_ptx.cuh"
#endif
#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdint>

namespace tessera_emulator_test {

/// The planted fault.
enum class BlackwellFault {
    none,
    wrong_parity,               // consumer waits for the wrong parity of the full barriers
    missing_expect,             // the full barriers expect no bytes
    too_many_bytes,             // more bytes are expected than arrive
    too_few_bytes,              // fewer bytes are expected than arrive
    stage_reused_early,         // the empty barrier is released by the MMA thread instead of by a commit
    accumulator_before_commit,  // the epilogue does not wait for the last commit
    tensor_memory_leak,         // no dealloc
    read_after_release,         // tcgen05.ld after dealloc
    allocate_after_relinquish,
    allocated_by_two,          // two warps allocate all of tensor memory, the first does not free it
    no_arrival_on_zero_trips,  // no commit if k is 0
    barrier_memory_reused,     // the barriers' memory is written as data without mbarrier.inval
    barrier_initialized_twice,
    misaligned_stage,         // stages start 64 bytes after a place where TMA may write
    stage_within_pattern,     // no fault: stages start in the middle of the swizzle's pattern, for TMA and MMA alike
    hopper_descriptor,        // the matrix descriptor lacks the constant bits and has Hopper's swizzle code
    wrong_instruction_shape,  // N of the instruction descriptor is not allowed
    first_step_accumulates,   // enable_input_d is true on uninitialized tensor memory
    foreign_lanes,            // an epilogue warp reads the lanes of another one
    no_wait_for_load,         // registers of tcgen05.ld are used without wait::ld
    barrier_not_initialized,  // the empty barriers are never initialized
    lanes_diverge_at_alloc,   // tcgen05.alloc by half of a warp
    // pairs only
    commit_to_one,        // the commit that frees a stage does not reach the peer
    mask_beyond_cluster,  // the commit's mask names CTAs that do not exist
    allocate_before_cluster_sync,
    peer_leaves_early,  // the second CTA does not wait for the pair at the end
    release_before_peer_allocates,
    commit_of_other_group,  // the commit that frees a stage is one of cta_group::1
    last,
};

constexpr int stages = 4;
constexpr int block_k = 64;
constexpr int rows_per_cta = 128;  // of A and of B, in a stage
constexpr int stage_bytes = 2 * rows_per_cta * block_k * 2;
constexpr int threads = 192;

/// Bytes of dynamic shared memory: the stages, room to align them, barriers.
constexpr int shared_bytes = stages * stage_bytes + 1024 + 256;

/// M and N of a tile: of one CTA, or of a pair.
template <int group>
inline constexpr int tile_m = 128 * group;
template <int group>
inline constexpr int tile_n = 128 * group;

#ifdef __CUDACC__

/// m and n are multiples of the tile, k of 64. A is m x k, B is n x k, D is m x n, all row-major.
template <int group, BlackwellFault fault>
__global__ void __launch_bounds__(threads)
    blackwell_gemm(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                   __nv_bfloat16* d, int n, int k)
{
    constexpr int columns = tile_n<group>;
    constexpr std::uint32_t shape_n = fault == BlackwellFault::wrong_instruction_shape ? 120 : tile_n<group>;
    // bf16 x bf16 -> f32, both K-major
    constexpr std::uint32_t instruction = 1u << 4 | 1u << 7 | 1u << 10 | (shape_n >> 3) << 17 |
                                          (tile_m<group> >> 4) << 24 |
                                          (fault == BlackwellFault::wrong_instruction_shape ? 1u << 30 : 0);
    extern __shared__ std::uint8_t dynamic[];
    const std::uint32_t base = shared_address(dynamic);
    const std::uint32_t first_stage = ((base + 1023) & ~1023u) + (fault == BlackwellFault::misaligned_stage       ? 64
                                                                  : fault == BlackwellFault::stage_within_pattern ? 512
                                                                                                                  : 0);
    const std::uint32_t barriers = base + stages * stage_bytes + 1024;
    const auto full = [&](int s) { return barriers + 8 * s; };
    const auto empty = [&](int s) { return barriers + 8 * (stages + s); };
    const std::uint32_t done = barriers + 8 * 2 * stages;
    const std::uint32_t address_slot = done + 8;

    const auto matrix_descriptor = [](std::uint32_t address) {
        return fault == BlackwellFault::hopper_descriptor ? hopper_descriptor(address) : blackwell_descriptor(address);
    };

    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    std::uint32_t rank = 0;
    if constexpr (group == 2) {
        asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    }
    const int m_base = static_cast<int>(blockIdx.x) * rows_per_cta;
    const int n_base = static_cast<int>(blockIdx.y) * tile_n<group>;
    const int b_base = n_base + static_cast<int>(rank) * rows_per_cta;
    const int steps = k / block_k;
    const std::uint16_t pair = fault == BlackwellFault::mask_beyond_cluster ? 0b111 : 0b11;

    if (warp == 0 && lane == 0) {
        for (int s = 0; s < stages; ++s) {
            barrier_init(full(s), 1);
            if constexpr (fault != BlackwellFault::barrier_not_initialized) {
                barrier_init(empty(s), 1);
            }
        }
        barrier_init(done, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if constexpr (group == 2 && fault != BlackwellFault::allocate_before_cluster_sync) {
        cluster_sync();
    }
    if (warp == 1) {
        if constexpr (fault == BlackwellFault::lanes_diverge_at_alloc) {
            if (lane < 16) {
                allocate<group>(address_slot, columns);
            }
        } else {
            allocate<group>(address_slot, columns);
        }
        if constexpr (fault == BlackwellFault::release_before_peer_allocates) {
            if (rank == 0) {  // commits of the other CTA are still to arrive
                deallocate<group>(load_shared(address_slot), columns);
            }
        }
        if constexpr (fault != BlackwellFault::allocated_by_two) {
            relinquish<group>();
        }
        if constexpr (fault == BlackwellFault::allocate_after_relinquish) {
            allocate<group>(address_slot + 4, 32);
        }
    }
    if (fault == BlackwellFault::allocated_by_two && warp == 2) {
        allocate<group>(address_slot + 4, 512);
    }
    if constexpr (fault == BlackwellFault::barrier_initialized_twice) {
        if (warp == 0 && lane == 0) {
            barrier_init(done, 1);
        }
    }
    fence_before_sync();
    __syncthreads();
    if constexpr (group == 2) {
        cluster_sync();
    }
    fence_after_sync();
    std::uint32_t accumulator;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(accumulator) : "r"(address_slot));

    if (warp == 0) {  // load warp
        if (elect_one()) {
            for (int step = 0; step < steps; ++step) {
                const int s = step % stages;
                barrier_wait(empty(s), (step / stages & 1) ^ 1);
                constexpr int bytes = stage_bytes * group + (fault == BlackwellFault::too_many_bytes  ? 16
                                                             : fault == BlackwellFault::too_few_bytes ? -16
                                                                                                      : 0);
                if constexpr (fault == BlackwellFault::missing_expect) {
                    if (rank == 0) {
                        barrier_arrive(full(s));
                    }
                } else if (rank == 0) {
                    barrier_expect(full(s), bytes);
                }
                const std::uint32_t stage = first_stage + s * stage_bytes;
                load_box<group>(stage, &a_map, step * block_k, m_base, full(s));
                load_box<group>(stage + stage_bytes / 2, &b_map, step * block_k, b_base, full(s));
            }
            for (int step = steps; step < steps + stages; ++step) {  // nobody leaves while a commit may still arrive
                barrier_wait(empty(step % stages), (step / stages & 1) ^ 1);
            }
        }
    } else if (warp == 1 && rank == 0) {  // MMA warp
        if (elect_one()) {
            for (int step = 0; step < steps; ++step) {
                const int s = step % stages;
                barrier_wait(full(s), (step / stages & 1) ^ (fault == BlackwellFault::wrong_parity ? 1 : 0));
                fence_after_sync();
                const std::uint32_t stage = first_stage + s * stage_bytes;
                for (int i = 0; i < block_k / 16; ++i) {  // 16 elements are 32 bytes further on
                    multiply<group>(accumulator, matrix_descriptor(stage + 32 * i),
                                    matrix_descriptor(stage + stage_bytes / 2 + 32 * i), instruction,
                                    fault == BlackwellFault::first_step_accumulates || step > 0 || i > 0);
                }
                if constexpr (fault == BlackwellFault::stage_reused_early) {
                    barrier_arrive(empty(s));
                    if constexpr (group == 2) {
                        asm volatile(
                            "{\n.reg .b32 peer;\nmapa.shared::cluster.u32 peer, %0, 1;\n"
                            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [peer];\n}" ::"r"(empty(s))
                            : "memory");
                    }
                } else if constexpr (fault == BlackwellFault::commit_of_other_group) {
                    commit<1>(empty(s), pair);
                } else {
                    commit<group>(empty(s), fault == BlackwellFault::commit_to_one ? 1 : pair);
                }
            }
            if (fault != BlackwellFault::no_arrival_on_zero_trips || steps > 0) {
                commit<group>(done, pair);
            }
        }
    } else if (warp >= 2) {  // store warps
        if constexpr (fault != BlackwellFault::accumulator_before_commit) {
            barrier_wait(done, 0);
        }
        fence_after_sync();
        const int quarter = (fault == BlackwellFault::foreign_lanes ? warp + 1 : warp) % 4;
        const int row = m_base + 32 * (warp % 4) + lane;
        for (int column = 0; column < columns; column += 16) {
            std::uint32_t r[16] = {};
            if (steps > 0) {  // otherwise there is no product, and D is 0
                load_columns<fault != BlackwellFault::no_wait_for_load>(
                    accumulator + (static_cast<std::uint32_t>(quarter) << 21) + column, r);
            }
            for (int i = 0; i < 16; i += 2) {
                const __nv_bfloat162 both = __floats2bfloat162_rn(__uint_as_float(r[i]), __uint_as_float(r[i + 1]));
                *reinterpret_cast<__nv_bfloat162*>(d + static_cast<std::int64_t>(row) * n + n_base + column + i) = both;
            }
        }
        fence_before_sync();
    }
    if constexpr (fault == BlackwellFault::barrier_memory_reused) {
        if (warp == 2 && lane == 0) {
            asm volatile("st.shared.b64 [%0], %1;" ::"r"(done), "l"(0ll) : "memory");
        }
    }
    __syncwarp();
    if constexpr (group == 2) {
        if (fault != BlackwellFault::peer_leaves_early || rank == 0) {
            cluster_sync();
        }
    } else {
        __syncthreads();
    }
    if (warp == 1) {
        fence_after_sync();
        if constexpr (fault != BlackwellFault::tensor_memory_leak) {
            deallocate<group>(accumulator, columns);
        }
        if constexpr (fault == BlackwellFault::read_after_release) {
            std::uint32_t r[16];
            load_columns<true>(accumulator + (1u << 21), r);
            d[0] = __float2bfloat16(__uint_as_float(r[0]));
        }
    }
}

#endif  // __CUDACC__

}  // namespace tessera_emulator_test
