#pragma once

// The instructions that the facts are about, one function each.

#include <cuda.h>

#include <cstdint>

namespace tessera::truth {

__device__ inline std::uint32_t shared_address(const void* pointer)
{
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline void barrier_init(std::uint32_t barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void arrive_expect(std::uint32_t barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ inline bool test_parity(std::uint32_t barrier, unsigned parity)
{
    unsigned done = 0;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done != 0;
}

/// Polls long enough for any copy to complete; returns false if the phase is then incomplete.
__device__ inline bool wait_bounded(std::uint32_t barrier, unsigned parity)
{
    constexpr int looks = 3000;
    for (int i = 0; i < looks; ++i) {
        if (test_parity(barrier, parity)) {
            return true;
        }
        __nanosleep(500);
    }
    return false;
}

__device__ inline void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ inline void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
__device__ inline std::uint32_t cluster_rank()
{
    std::uint32_t rank = 0;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ inline std::uint32_t map_address(std::uint32_t address, std::uint32_t rank)
{
    std::uint32_t mapped = 0;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

/// Coordinates of a tensor copy, innermost first.
struct Coordinates {
    int c[5] = {};
};

template <int rank>
__device__ void tensor_load(std::uint32_t to, const CUtensorMap* map, const Coordinates& at, std::uint32_t barrier)
{
    static_assert(rank >= 1 && rank <= 3);
    if constexpr (rank == 1) {
        asm volatile(
            "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], "
            "[%3];" ::"r"(to),
            "l"(map), "r"(at.c[0]), "r"(barrier)
            : "memory");
    } else if constexpr (rank == 2) {
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
            "[%4];" ::"r"(to),
            "l"(map), "r"(at.c[0]), "r"(at.c[1]), "r"(barrier)
            : "memory");
    } else {
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
            "%4}], "
            "[%5];" ::"r"(to),
            "l"(map), "r"(at.c[0]), "r"(at.c[1]), "r"(at.c[2]), "r"(barrier)
            : "memory");
    }
}

__device__ inline void commit_and_wait_bulk()
{
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

}  // namespace tessera::truth
