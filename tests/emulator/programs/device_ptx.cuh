#pragma once

// The PTX of the test programs that CUDA C++ does not offer, one function per instruction.

#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdint>

namespace tessera_emulator_test {

__device__ inline std::uint32_t shared_address(const void* pointer)
{
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline void barrier_init(std::uint32_t barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ inline void barrier_expect(std::uint32_t barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ inline void barrier_arrive(std::uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ inline void barrier_wait(std::uint32_t barrier, int parity)
{
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "WAIT:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
        "@complete bra DONE;\n"
        "bra WAIT;\n"
        "DONE:\n"
        "}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

__device__ inline void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ inline bool elect_one()
{
    int elected;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.s32 %0, 1, 0, p;\n}" : "=r"(elected));
    return elected != 0;
}

template <int group>
__device__ inline void load_box(std::uint32_t destination, const CUtensorMap* map, int column, int row,
                                std::uint32_t barrier)
{
    if constexpr (group == 1) {
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
            "[%4];" ::"r"(destination),
            "l"(map), "r"(column), "r"(row), "r"(barrier)
            : "memory");
    } else {  // the leader's barrier counts the bytes of both CTAs
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%0], [%1, "
            "{%2, %3}], [%4];" ::"r"(destination),
            "l"(map), "r"(column), "r"(row), "r"(barrier & 0xFEFFFFFF)
            : "memory");
    }
}

template <int group>
__device__ inline void multiply(std::uint32_t d, std::uint64_t a, std::uint64_t b, std::uint32_t instruction,
                                bool accumulate)
{
    if constexpr (group == 1) {
        asm volatile(
            "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(
                d),
            "l"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(accumulate))
            : "memory");
    } else {
        asm volatile(
            "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(
                d),
            "l"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(accumulate))
            : "memory");
    }
}

template <int group>
__device__ inline void commit(std::uint32_t barrier, std::uint16_t mask)
{
    if constexpr (group == 1) {
        asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
                     : "memory");
    } else {
        asm volatile(
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
                barrier),
            "h"(mask)
            : "memory");
    }
}

template <int group>
__device__ inline void allocate(std::uint32_t result, int columns)
{
    if constexpr (group == 1) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(result), "r"(columns)
                     : "memory");
    } else {
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(result), "r"(columns)
                     : "memory");
    }
}

template <int group>
__device__ inline void relinquish()
{
    if constexpr (group == 1) {
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
    } else {
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
    }
}

template <int group>
__device__ inline void deallocate(std::uint32_t address, int columns)
{
    if constexpr (group == 1) {
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
    } else {
        asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
    }
}

__device__ inline void fence_before_sync() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }

__device__ inline void fence_after_sync() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

/// 16 columns of the warp's 32 lanes.
template <bool wait>
__device__ inline void load_columns(std::uint32_t address, std::uint32_t (&r)[16])
{
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
        "%15}, [%16];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]), "=r"(r[8]),
          "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]), "=r"(r[14]), "=r"(r[15])
        : "r"(address));
    if constexpr (wait) {
        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    }
}

/// Descriptor of a K-major tile of 128-byte rows with the 128-byte swizzle; rows in groups of 8.
__device__ inline std::uint64_t blackwell_descriptor(std::uint32_t address)
{
    return 0x4000404000010000 | (address & 0x3FFFF) >> 4;
}

/// The same for wgmma.
__device__ inline std::uint64_t hopper_descriptor(std::uint32_t address)
{
    return 0x4000004000010000 | (address & 0x3FFFF) >> 4;
}

/// The address in CTA `rank` of the cluster with the same place as `address` in this CTA.
__device__ inline std::uint32_t in_cta(std::uint32_t address, int rank)
{
    std::uint32_t result;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(rank));
    return result;
}

__device__ inline int cluster_rank()
{
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/// `barrier` is an address of the cluster, see in_cta().
__device__ inline void barrier_arrive_cluster(std::uint32_t barrier)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ inline void barrier_expect_cluster(std::uint32_t barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ inline void barrier_wait_cluster(std::uint32_t barrier, int parity)
{
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "WAIT:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%0], %1;\n"
        "@complete bra DONE;\n"
        "bra WAIT;\n"
        "DONE:\n"
        "}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// Makes earlier generic accesses to shared memory visible to later asynchronous copies.
__device__ inline void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// A box for each CTA in `mask`, at the same place in each; each CTA's barrier counts the bytes.
__device__ inline void load_box_multicast(std::uint32_t destination, const CUtensorMap* map, int column, int row,
                                          std::uint32_t barrier, std::uint16_t mask)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3}], [%4], %5;" ::"r"(destination),
        "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(mask)
        : "memory");
}

__device__ inline void store_box(const CUtensorMap* map, int column, int row, std::uint32_t source)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
                 "r"(column), "r"(row), "r"(source)
                 : "memory");
}

__device__ inline void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/// Waits until the sources of all but the latest `groups` groups have been read.
template <int groups>
__device__ inline void wait_for_sources()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(groups) : "memory");
}

__device__ inline void wait_for_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

__device__ inline void store_shared(std::uint32_t address, const std::uint32_t (&r)[4])
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

__device__ inline std::uint32_t load_shared(std::uint32_t address)
{
    std::uint32_t result;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(result) : "r"(address));
    return result;
}

/// Two floats as bf16, the first one in the lower half.
__device__ inline std::uint32_t pack(std::uint32_t low, std::uint32_t high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(__uint_as_float(low), __uint_as_float(high));
    return reinterpret_cast<const std::uint32_t&>(both);
}

}  // namespace tessera_emulator_test
