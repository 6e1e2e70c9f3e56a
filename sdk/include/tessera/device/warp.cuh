#pragma once

/// @file
/// @ingroup device_warps
/// @brief What warps do together: elect a thread, meet at a numbered barrier, exchange registers between warpgroups,
/// store matrices.
///
/// One small function for each instruction that cuda::ptx lacks.
///
/// Source: PTX ISA, "elect.sync", "barrier", "setmaxnreg", "stmatrix".

#include "tessera/detail/language.hpp"

#include <cstdint>

namespace tessera {

/// Returns true in one thread of the calling warp, always the same one. The warp must be converged. Needs sm_90.
///
/// Unlike `lane == 0`, it tells the compiler that one thread executes the code that follows.
///
/// @code{.cpp}
/// if (elect_one()) {
///     prefetch(a_map);
/// }
/// @endcode
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

/// Returns the first lane's value in all lanes of the calling, converged warp.
///
/// Use it also for a value that all lanes have: the compiler then knows that it is the same in all of them, and
/// computes what depends on it once per warp.
template <class T>
__device__ __forceinline__ T of_first_lane(T value)
{
    return __shfl_sync(0xFFFFFFFFU, value, 0);
}

/// Ends the calling thread. For the threads of a warp that leave a long wait to one of them.
///
/// A branch around the wait is not enough. nvcc puts a YIELD into loops that wait, which lets the other threads pass
/// where the branches meet (BSYNC: on an H200 all 31 did, in 79200 of 79200 warps). They continue beside the one that
/// waits, and since nvcc assumes a converged warp, it gives both the same uniform registers. If the other threads are
/// needed later, let the whole warp wait, and let `elect_one` choose who acts.
[[noreturn]] __device__ __forceinline__ void exit_thread()
{
    asm volatile("exit;");
    __builtin_unreachable();
}

/// One of a CTA's 16 barriers, at which `Threads` of its threads meet. Number 0 is that of `__syncthreads`.
///
/// @code{.cpp}
/// const NamedBarrier<128> epilogue_warps(1);
/// epilogue_warps.synchronize();  // the four warps of the epilogue
/// @endcode
///
/// @tparam Threads  the threads that meet: whole warps, 32 to 1024
template <std::uint32_t Threads>
class NamedBarrier {
    static_assert(Threads > 0 && Threads <= 1024 && Threads % 32 == 0,
                  "tessera: a named barrier takes whole warps: 32 to 1024 threads, a multiple of 32");

public:
    /// Names the barrier with this number.
    /// @param number  1 to 15
    __device__ __forceinline__ explicit NamedBarrier(std::uint32_t number) : number_(number) {}

    /// Arrives and waits until all `Threads` threads have arrived. What they did before is visible to each of them.
    /// Called by whole, converged warps.
    __device__ __forceinline__ void synchronize() const
    {
        asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(number_), "n"(Threads) : "memory");
    }
    /// Arrives and does not wait. Called by whole, converged warps.
    __device__ __forceinline__ void arrive() const
    {
        asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(number_), "n"(Threads) : "memory");
    }

private:
    std::uint32_t number_;
};

/// Reduces the registers of the calling warpgroup to `Registers` per thread and frees the others. Called by all four
/// warps, converged. Needs sm_90a.
/// @tparam Registers  24 to 256, a multiple of 8
template <int Registers>
__device__ __forceinline__ void give_registers_back()
{
    static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0,
                  "tessera: a thread has 24 to 256 registers, a multiple of 8");
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Raises the registers of the calling warpgroup to `Registers` per thread; waits until so many are free. Called by all
/// four warps, converged. Needs sm_90a.
/// @tparam Registers  24 to 256, a multiple of 8
template <int Registers>
__device__ __forceinline__ void take_registers()
{
    static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0,
                  "tessera: a thread has 24 to 256 registers, a multiple of 8");
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Stores four 8x8 matrices of 16-bit elements to shared memory. Called by the whole, converged warp. Needs sm_90.
/// @param row     lane l gives the address of row l % 8 of matrix l / 8, a multiple of 16 bytes
/// @param values  the calling lane's two elements of each matrix
__device__ __forceinline__ void store_matrices(const void* row, const std::uint32_t (&values)[4])
{
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(values[0]),
                 "r"(values[1]), "r"(values[2]), "r"(values[3])
                 : "memory");
}

/// Stores two 8x8 matrices of 16-bit elements: lanes 0 to 15 give the addresses of the rows.
__device__ __forceinline__ void store_matrices(const void* row, const std::uint32_t (&values)[2])
{
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(values[0]),
                 "r"(values[1])
                 : "memory");
}

/// Loads four 8x8 matrices of 16-bit elements from shared memory, as `store_matrices` stores them. Called by the whole,
/// converged warp. Needs sm_75.
/// @param row     lane l gives the address of row l % 8 of matrix l / 8, a multiple of 16 bytes
/// @param values  receives the calling lane's two elements of each matrix
__device__ __forceinline__ void load_matrices(const void* row, std::uint32_t (&values)[4])
{
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
                 : "r"(address)
                 : "memory");
}

/// Loads two 8x8 matrices of 16-bit elements: lanes 0 to 15 give the addresses of the rows.
__device__ __forceinline__ void load_matrices(const void* row, std::uint32_t (&values)[2])
{
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(values[0]), "=r"(values[1])
                 : "r"(address)
                 : "memory");
}

}  // namespace tessera
