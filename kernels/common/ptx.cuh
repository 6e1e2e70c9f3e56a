#pragma once

/// PTX instructions that neither `cuda::ptx` nor a CUDA intrinsic offers, one small named function each.

#include <cstdint>

namespace tessera::kernels::ptx {

/// Starts an asynchronous copy of `Bytes` (4 or 16, both addresses so aligned) to shared memory (sm_80 and above). If
/// not `valid`, nothing is read, whatever `global` is, and zeros are written. Part of the thread's open `cp.async`
/// group.
template <int Bytes>
__device__ __forceinline__ void cp_async_or_zero(void* shared, const void* global, bool valid)
{
    static_assert(Bytes == 4 || Bytes == 16);
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    const std::uint32_t valid_bytes = valid ? Bytes : 0;
    if constexpr (Bytes == 16) {  // .cg: past L1, which could not use it again
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global), "r"(valid_bytes)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(global), "r"(valid_bytes)
                     : "memory");
    }
}

/// threadIdx.x, read anew: nothing that follows from it is kept in registers from one use to the next.
__device__ __forceinline__ int read_thread_index()
{
    int index = 0;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
    return index;
}

}  // namespace tessera::kernels::ptx
