#pragma once

/// PTX instructions that neither `cuda::ptx` nor a CUDA intrinsic offers. Each is one small named function.

#include <cstdint>

namespace tessera::kernels::ptx {

/// Starts an asynchronous copy of `Bytes` (4 or 16; both addresses must be aligned to it) to shared memory; sm_80.
/// If not `valid`, nothing is read, whatever `global` is, and zeros are written. The copy joins the thread's open
/// `cp.async` group.
template <int Bytes>
__device__ __forceinline__ void cp_async_or_zero(void* shared, const void* global, bool valid)
{
    static_assert(Bytes == 4 || Bytes == 16);
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    const std::uint32_t valid_bytes = valid ? Bytes : 0;
    if constexpr (Bytes == 16) {  // .cg bypasses L1, where the data would not be reused
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global), "r"(valid_bytes)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(global), "r"(valid_bytes)
                     : "memory");
    }
}

/// Starts an asynchronous copy of `Bytes` (4, 8 or 16; both addresses must be aligned to it) to shared memory; sm_80. The
/// first `valid_bytes` are copied, and zeros follow; if there are none, nothing is read, whatever `global` is. The copy
/// joins the thread's open `cp.async` group.
template <int Bytes>
__device__ __forceinline__ void cp_async(std::uint32_t shared, const void* global, int valid_bytes)
{
    static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
    if constexpr (Bytes == 16) {  // .cg bypasses L1
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
                     "r"(valid_bytes)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(shared), "l"(global), "r"(valid_bytes),
                     "n"(Bytes)
                     : "memory");
    }
}

/// Reads threadIdx.x again, so that the compiler keeps nothing derived from it in registers between two uses.
__device__ __forceinline__ int read_thread_index()
{
    int index = 0;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
    return index;
}

/// Asks for the cache line of `address` to be brought into L2. Nothing waits for it.
__device__ __forceinline__ void prefetch_to_l2(const void* address)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

/// The same for L1.
__device__ __forceinline__ void prefetch_to_l1(const void* address)
{
    asm volatile("prefetch.global.L1 [%0];" ::"l"(address));
}

/// Keeps the computation of `value` where it is. Without it, the compiler may move it into the branches that use it.
__device__ __forceinline__ void pin(float& value) { asm volatile("" : "+f"(value)); }

/// Keeps the code after an `if` a branch. Without it, the compiler may compute all cases and select among their values.
__device__ __forceinline__ void stay_a_branch() { asm volatile(""); }

}  // namespace tessera::kernels::ptx
