#pragma once

/// @file
/// @brief Tensor memory in fragments of (16, 8) values, the layout of the sums of mma.sync and wgmma: lane t of a warp has columns
/// 2 * (t % 4) and the next one of rows t / 4 and t / 4 + 8. Private to the SDK.
///
/// A warp reaches the 32 lanes of tensor memory of its position in its warpgroup, here 16 at a time. All functions are called by
/// whole, converged warps.
///
/// Source: PTX ISA 9.0, "tcgen05.ld", "tcgen05.st", shapes .16x256b and .16x128b.

#include "tessera/detail/language.hpp"

#include <cstdint>

#include "tessera/device/tmem.cuh"

namespace tessera::detail {

/// Returns the address of lane `lane` and column `column` from an allocation's on.
__device__ __forceinline__ std::uint32_t tmem_address(std::uint32_t first, std::uint32_t lane, std::uint32_t column)
{
    constexpr std::uint32_t lane_shift = 16;
    return first + (lane << lane_shift) + column;
}

/// Starts to load `Count` fragments side by side: 4 values of each. `tcgen05_wait_loads` ends it.
/// @tparam Count  1, 2, 4 or 8
template <int Count>
__device__ __forceinline__ void tcgen05_load_fragments(std::uint32_t address, float* r)
{
    static_assert(Count == 1 || Count == 2 || Count == 4 || Count == 8);
    if constexpr (Count == 1) {
        asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3])
                     : "r"(address)
                     : "memory");
    } else if constexpr (Count == 2) {
        asm volatile("tcgen05.ld.sync.aligned.16x256b.x2.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                     : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]), "=f"(r[7])
                     : "r"(address)
                     : "memory");
    } else if constexpr (Count == 4) {
        asm volatile(
            "tcgen05.ld.sync.aligned.16x256b.x4.b32 "
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];"
            : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]), "=f"(r[7]),
              "=f"(r[8]), "=f"(r[9]), "=f"(r[10]), "=f"(r[11]), "=f"(r[12]), "=f"(r[13]), "=f"(r[14]), "=f"(r[15])
            : "r"(address)
            : "memory");
    } else {
        asm volatile(
            "tcgen05.ld.sync.aligned.16x256b.x8.b32 "
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
            : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]), "=f"(r[7]),
              "=f"(r[8]), "=f"(r[9]), "=f"(r[10]), "=f"(r[11]), "=f"(r[12]), "=f"(r[13]), "=f"(r[14]), "=f"(r[15]),
              "=f"(r[16]), "=f"(r[17]), "=f"(r[18]), "=f"(r[19]), "=f"(r[20]), "=f"(r[21]), "=f"(r[22]), "=f"(r[23]),
              "=f"(r[24]), "=f"(r[25]), "=f"(r[26]), "=f"(r[27]), "=f"(r[28]), "=f"(r[29]), "=f"(r[30]), "=f"(r[31])
            : "r"(address)
            : "memory");
    }
}

/// Starts to store `Count` fragments side by side. `tcgen05_wait_stores` ends it.
/// @tparam Count  1 or 4
template <int Count>
__device__ __forceinline__ void tcgen05_store_fragments(std::uint32_t address, const float* r)
{
    static_assert(Count == 1 || Count == 4);
    if constexpr (Count == 1) {
        asm volatile("tcgen05.st.sync.aligned.16x256b.x1.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(r[0]),
                     "f"(r[1]), "f"(r[2]), "f"(r[3])
                     : "memory");
    } else {
        asm volatile(
            "tcgen05.st.sync.aligned.16x256b.x4.b32 "
            "[%0], {%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16};" ::"r"(address),
            "f"(r[0]), "f"(r[1]), "f"(r[2]), "f"(r[3]), "f"(r[4]), "f"(r[5]), "f"(r[6]), "f"(r[7]), "f"(r[8]),
            "f"(r[9]), "f"(r[10]), "f"(r[11]), "f"(r[12]), "f"(r[13]), "f"(r[14]), "f"(r[15])
            : "memory");
    }
}

/// Starts to store `Count` fragments of 16-bit values side by side, two in a word: 4 columns of tensor memory each.
/// @tparam Count  1 or 4
template <int Count>
__device__ __forceinline__ void tcgen05_store_packed_fragments(std::uint32_t address, const std::uint32_t* r)
{
    static_assert(Count == 1 || Count == 4);
    if constexpr (Count == 1) {
        asm volatile("tcgen05.st.sync.aligned.16x128b.x1.b32 [%0], {%1, %2};" ::"r"(address), "r"(r[0]), "r"(r[1])
                     : "memory");
    } else {
        asm volatile("tcgen05.st.sync.aligned.16x128b.x4.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"r"(address),
                     "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7])
                     : "memory");
    }
}

}  // namespace tessera::detail
