#pragma once

/// What warps do together beyond the intrinsics of CUDA C++: elect a thread, meet at a numbered barrier, exchange
/// registers between warpgroups, store matrices. One small function for each instruction that cuda::ptx lacks.
///
/// Source: PTX ISA, "elect.sync", "barrier", "setmaxnreg", "stmatrix".

#include "tessera/detail/language.hpp"

#include <cstdint>

namespace tessera {

/// True in one thread of the calling, converged warp: always the same one. Tells the compiler that the code behind it
/// is executed by one thread, which `lane == 0` does not. sm_90 and above.
__device__ __forceinline__ bool elect_one()
{
    std::uint32_t elected = 0;
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "elect.sync _|p, 0xFFFFFFFF;\n\t"
        "selp.b32 %0, 1, 0, p;\n\t"
        "}"
        : "=r"(elected));
    return elected != 0;
}

/// The first lane's value, in all lanes of the calling, converged warp. Of a value that is the same in all of them,
/// too: the compiler does not know that it is, and computes what follows from this one once for the warp.
template <class T>
__device__ __forceinline__ T of_first_lane(T value)
{
    return __shfl_sync(0xFFFFFFFFU, value, 0);
}

/// Ends the calling thread: for those of a warp that leave a long wait to one of them.
///
/// It is not enough to send them around it. nvcc puts a YIELD into loops that wait, and that lets the others pass where
/// the branches meet (BSYNC: on an H200 all 31 did, in 79200 of 79200 warps). They go on beside the one that waits, and
/// since nvcc takes the warp for converged, it gives both the same uniform registers. Where the others are needed
/// later, the whole warp waits, and `elect_one` chooses who issues.
[[noreturn]] __device__ __forceinline__ void exit_thread()
{
    asm volatile("exit;");
    __builtin_unreachable();
}

/// One of a CTA's 16 barriers, at which `Threads` of its threads meet. Number 0 is that of `__syncthreads`.
template <std::uint32_t Threads>
class NamedBarrier {
    static_assert(Threads > 0 && Threads <= 1024 && Threads % 32 == 0,
                  "tessera: a named barrier takes whole warps: 32 to 1024 threads, a multiple of 32");

public:
    /// @param number  1 to 15
    __device__ __forceinline__ explicit NamedBarrier(std::uint32_t number) : number_(number) {}

    /// Arrives and waits until all have. Executed by whole warps.
    __device__ __forceinline__ void synchronize() const
    {
        asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(number_), "n"(Threads) : "memory");
    }
    /// Arrives and does not wait. Executed by whole warps.
    __device__ __forceinline__ void arrive() const
    {
        asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(number_), "n"(Threads) : "memory");
    }

private:
    std::uint32_t number_;
};

/// Leaves `Registers` per thread to each warp of the calling warpgroup and gives the others back. sm_90a and above.
template <int Registers>
__device__ __forceinline__ void give_registers_back()
{
    static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0,
                  "tessera: a thread has 24 to 256 registers, a multiple of 8");
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Waits until there are `Registers` per thread for each warp of the calling warpgroup. sm_90a and above.
template <int Registers>
__device__ __forceinline__ void take_registers()
{
    static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0,
                  "tessera: a thread has 24 to 256 registers, a multiple of 8");
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Stores four 8x8 matrices of 16-bit elements to shared memory; lane l gives the address of row l % 8 of matrix l / 8.
/// Executed by the whole warp. sm_90 and above.
__device__ __forceinline__ void store_matrices(const void* row, const std::uint32_t (&values)[4])
{
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(values[0]),
                 "r"(values[1]), "r"(values[2]), "r"(values[3])
                 : "memory");
}

/// The same with the upper two matrices alone, eight columns: the rows' addresses are of lanes 0 to 15.
__device__ __forceinline__ void store_matrices(const void* row, const std::uint32_t (&values)[2])
{
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(values[0]),
                 "r"(values[1])
                 : "memory");
}

}  // namespace tessera
