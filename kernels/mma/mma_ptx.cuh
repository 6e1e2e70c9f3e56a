#pragma once

/// Accesses to shared memory by its 32-bit addresses, as ldmatrix and cp.async take them, and a special register.

#include <cstdint>

namespace tessera::kernels::ptx {

/// Stores 16 bytes to an address in shared memory, a multiple of 16.
__device__ __forceinline__ void store_shared(std::uint32_t address, const uint4& value)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(value.x), "r"(value.y), "r"(value.z),
                 "r"(value.w)
                 : "memory");
}

/// Loads 4 bytes, or one, from an address in shared memory.
template <int Bytes>
__device__ __forceinline__ std::uint32_t load_shared(std::uint32_t address)
{
    static_assert(Bytes == 1 || Bytes == 4);
    std::uint32_t value = 0;
    if constexpr (Bytes == 4) {
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    } else {
        asm volatile("ld.shared.u8 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    }
    return value;
}

/// Reads blockIdx.x again, so that the compiler keeps nothing derived from it in registers between two uses.
__device__ __forceinline__ std::uint32_t read_block_index()
{
    std::uint32_t index = 0;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
    return index;
}

}  // namespace tessera::kernels::ptx
