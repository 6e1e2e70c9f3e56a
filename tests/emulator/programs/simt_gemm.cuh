#pragma once

// Kernels for any generation: D = A * B^T in f32 with tiles in shared memory and, with cp.async and mma.sync, in bf16.
// Once right and once with each planted fault.

#include <cstdint>

#ifdef __CUDACC__
#include "device_ptx.cuh"
#endif

namespace tessera_emulator_test {

enum class SimtFault {
    none,
    no_barrier_before_use,    // other warps' part of the tile is read at once
    no_barrier_before_reuse,  // the tile is overwritten while others read it
    global_out_of_bounds,     // one row too many
    shared_out_of_bounds,     // beyond the dynamic shared memory
    uninitialized_global,     // reads D, which nobody wrote
    uninitialized_shared,     // one column of the tile is not filled
    divergent_barrier,        // half of a warp
    deadlock,                 // a warp does not come to the barrier that counts it
    misaligned_vector,        // a 16-byte load at a multiple of 4
    last,
};

enum class AmpereFault {
    none,
    no_wait,     // reads while cp.async may be on its way
    no_barrier,  // waits for its own copies only
    overwrites,  // the next copy into a stage that is read
    last,
};

constexpr int simt_tile = 16;

#ifdef __CUDACC__

/// m, n and k are multiples of 16.
template <SimtFault fault>
__global__ void simt_gemm(const float* a, const float* b, float* d, int m, int n, int k)
{
    extern __shared__ float tiles[];
    float* a_tile = tiles;  // 16 x 16 each
    float* b_tile = tiles + simt_tile * simt_tile;
    const int x = static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(threadIdx.y);
    const int row = static_cast<int>(blockIdx.y) * simt_tile + y;
    const int column = static_cast<int>(blockIdx.x) * simt_tile + x;
    float sum = 0;
    if constexpr (fault == SimtFault::uninitialized_global) {
        sum = d[row * n + column];  // FAULT uninitialized_global
    }
    for (int step = 0; step < k; step += simt_tile) {
        if (fault != SimtFault::uninitialized_shared || x != 3) {
            a_tile[y * simt_tile + x] = a[row * k + step + x];
        }
        const int b_row = static_cast<int>(blockIdx.x) * simt_tile + y;
        const int beyond = fault == SimtFault::global_out_of_bounds ? n : 0;
        b_tile[y * simt_tile + x] = b[(b_row + beyond) * k + step + x];  // FAULT global_out_of_bounds
        if constexpr (fault == SimtFault::divergent_barrier) {
            if (x < 8) {
                asm volatile("bar.sync 0;" ::: "memory");  // FAULT divergent_barrier
            } else {
                asm volatile("bar.sync 1;" ::: "memory");
            }
        } else if constexpr (fault == SimtFault::deadlock) {
            if (y < 14) {
                asm volatile("bar.sync 1, 256;" ::: "memory");  // FAULT deadlock
            }
        } else if constexpr (fault != SimtFault::no_barrier_before_use) {
            __syncthreads();
        }
        for (int i = 0; i < simt_tile; ++i) {
            const int at = fault == SimtFault::shared_out_of_bounds && i == 15 ? 64 * simt_tile : i;
            sum += a_tile[y * simt_tile + i] * b_tile[x * simt_tile + at];  // FAULT shared
        }
        if constexpr (fault == SimtFault::misaligned_vector) {
            const float4 four = reinterpret_cast<const float4*>(a_tile + 1)[y];  // FAULT misaligned_vector
            sum += four.x + four.y + four.z + four.w;
        }
        if constexpr (fault != SimtFault::no_barrier_before_reuse) {
            __syncthreads();
        }
    }
    d[row * n + column] = sum;
}

/// One warp per 16 x 8 tile of D, two per CTA side by side; two stages of 16 elements of k. B is n x k.
template <AmpereFault fault>
__global__ void ampere_gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, float* d, int n, int k)
{
    __shared__ __align__(16) __nv_bfloat16 a_stages[2][16][16];
    __shared__ __align__(16) __nv_bfloat16 b_stages[2][16][16];  // 8 rows for each warp
    const int thread = static_cast<int>(threadIdx.x);
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int m_base = static_cast<int>(blockIdx.y) * 16;
    const int n_base = static_cast<int>(blockIdx.x) * 16;
    const auto load = [&](int step) {  // 64 threads copy 16 bytes each
        const int half = thread % 2;
        const int row = thread / 2 % 16;
        const bool is_a = thread < 32;
        const __nv_bfloat16* from = (is_a ? a + (m_base + row) * k : b + (n_base + row) * k) + step * 16 + half * 8;
        __nv_bfloat16* to = (is_a ? &a_stages[step % 2][row][half * 8] : &b_stages[step % 2][row][half * 8]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
    };
    float sums[4] = {};
    load(0);
    asm volatile("cp.async.commit_group;" ::: "memory");
    const int steps = k / 16;
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) {
            load(step + 1);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if constexpr (fault != AmpereFault::no_wait) {
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        }
        if constexpr (fault != AmpereFault::no_barrier) {
            __syncthreads();
        }
        std::uint32_t x[4];
        std::uint32_t y[2];
        const int s = step % 2;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(shared_address(&a_stages[s][lane % 16][lane / 16 * 8]))
                     : "memory");
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(y[0]), "=r"(y[1])
                     : "r"(shared_address(&b_stages[s][8 * warp + lane % 8][lane / 8 % 2 * 8]))
                     : "memory");
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
        if constexpr (fault != AmpereFault::overwrites) {
            __syncthreads();
        }
    }
    const int row = m_base + lane / 4;
    const int column = n_base + 8 * warp + lane % 4 * 2;
    d[row * n + column] = sums[0];
    d[row * n + column + 1] = sums[1];
    d[(row + 8) * n + column] = sums[2];
    d[(row + 8) * n + column + 1] = sums[3];
}

#endif  // __CUDACC__

}  // namespace tessera_emulator_test
