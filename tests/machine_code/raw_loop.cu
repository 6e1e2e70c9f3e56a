// Twin of typed_loop.cu: the same loop with only cuda::ptx, addresses and integers.

#include <cuda/ptx>

#include <cstdint>

#include "kernels/blackwell/blackwell_arguments.hpp"

namespace ptx = cuda::ptx;

namespace {

constexpr std::uint32_t stages = 6;
constexpr std::uint32_t stage_bytes = 16384;  // of A, and of B

struct Storage {
    alignas(1024) std::byte a[stages][stage_bytes];
    alignas(1024) std::byte b[stages][stage_bytes];
    std::byte staging[32768];
    std::uint64_t full[stages];
    std::uint64_t empty[stages];
    std::uint64_t accumulator_full[2];
    std::uint64_t accumulator_empty[2];
    std::uint32_t tensor_memory;
};

__device__ bool elect()
{
    std::uint32_t elected = 0;
    asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xFFFFFFFF;\n\tselp.b32 %0, 1, 0, p;\n\t}" : "=r"(elected));
    return elected != 0;
}

__device__ std::uint64_t advanced(std::uint64_t descriptor, std::uint32_t bytes)
{
    return (descriptor & 0xFFFFFFFF00000000U) | (static_cast<std::uint32_t>(descriptor) + (bytes >> 4));
}

__device__ std::uint32_t shared_offset(const void* data)
{
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(data)) & 0x3FFFFU;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256, 1)
    main_loop(const __grid_constant__ tessera::kernels::BlackwellArguments arguments)
{
    extern __shared__ __align__(1024) std::byte shared_memory[];
    Storage& storage = *reinterpret_cast<Storage*>(shared_memory);
    const std::uint32_t warp = __shfl_sync(0xFFFFFFFFU, threadIdx.x / 32, 0);
    const std::uint32_t rank = ptx::get_sreg_cluster_ctarank();
    if (threadIdx.x == 0) {
        for (std::uint32_t i = 0; i < stages; ++i) {
            ptx::mbarrier_init(&storage.full[i], 1);
            ptx::mbarrier_init(&storage.empty[i], 1);
        }
        for (std::uint32_t i = 0; i < 2; ++i) {
            ptx::mbarrier_init(&storage.accumulator_full[i], 1);
            ptx::mbarrier_init(&storage.accumulator_empty[i], 8);
        }
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::barrier_cluster_arrive(ptx::sem_relaxed);
    ptx::barrier_cluster_wait(ptx::sem_acquire);
    if (warp == 5) {
        ptx::tcgen05_alloc(ptx::cta_group_2, &storage.tensor_memory, 512);
        ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_2);
    }
    ptx::tcgen05_fence_before_thread_sync();
    __syncthreads();
    ptx::tcgen05_fence_after_thread_sync();
    const std::uint32_t tensor_memory = storage.tensor_memory;

    if (warp == 5 && rank % 2 == 0) {
        const auto mask = static_cast<std::uint16_t>(3U << (rank & ~1U));
        const std::uint64_t a_first = advanced(arguments.a.descriptor, shared_offset(storage.a));
        const std::uint64_t b_first = advanced(arguments.b.descriptor, shared_offset(storage.b));
        const std::uint32_t a_step = arguments.a.descriptor_step * 16;
        const std::uint32_t b_step = arguments.b.descriptor_step * 16;
        while (!ptx::mbarrier_try_wait_parity(&storage.accumulator_empty[0], 1)) {
        }
        ptx::tcgen05_fence_after_thread_sync();
        std::uint32_t stage = 0;
        std::uint32_t parity = 0;
        bool accumulate = false;
#pragma unroll 1
        for (std::uint32_t k = 0; k < arguments.k_steps; ++k) {
            while (!ptx::mbarrier_try_wait_parity(&storage.full[stage], parity)) {
            }
            const std::uint32_t current = stage;
            if (++stage == stages) {
                stage = 0;
                parity ^= 1;
            }
            ptx::tcgen05_fence_after_thread_sync();
            __builtin_assume(current < stages);
            const std::uint64_t a = advanced(a_first, current * stage_bytes);
            const std::uint64_t b = advanced(b_first, current * stage_bytes);
            if (elect()) {
#pragma unroll
                for (std::uint32_t i = 0; i < 4; ++i) {
                    ptx::tcgen05_mma(ptx::kind_f16, ptx::cta_group_2, tensor_memory, advanced(a, i * a_step),
                                     advanced(b, i * b_step), arguments.instruction, i == 0 ? accumulate : true);
                }
                ptx::tcgen05_commit_multicast(ptx::cta_group_2, &storage.empty[current], mask);
            }
            accumulate = true;
        }
        if (elect()) {
            ptx::tcgen05_commit_multicast(ptx::cta_group_2, &storage.accumulator_full[0], mask);
        }
    }
    __syncwarp();
    ptx::tcgen05_fence_before_thread_sync();
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    ptx::tcgen05_fence_after_thread_sync();
    if (warp == 5) {
        ptx::tcgen05_dealloc(ptx::cta_group_2, tensor_memory, 512);
    }
}
