#pragma once

/// What tensor memory holds beside accumulators: A of a matrix instruction, and the scale factors of block-scaled
/// kinds. Both are parts of an allocation (tmem.cuh makes them) with types of their own.
///
///     const auto scales = tensor_memory.scales<ScaledOperand::a, 128, 256>();  // columns 256 to 259
///     copy_scales(scales, shared.a_scales);                                    // mma.cuh, before the instruction
///
/// Source: PTX ISA 9.0, "Scale factor layout", "tcgen05.cp", "tcgen05.st".

#include <cstddef>
#include <cstdint>

#include "tessera/detail/host_device.hpp"
#include "tessera/device/cta_group.hpp"
#include "tessera/device/register_tile.cuh"

namespace tessera {

template <class State, std::uint32_t Columns, CtaGroup Group>
class Tmem;

/// Whose scale factors.
enum class ScaledOperand : std::uint8_t { a, b };

namespace detail {

inline constexpr std::uint32_t scale_rows = 128;          // whose scale factors are copied together
inline constexpr std::uint32_t scale_block_bytes = 512;   // four of each of them
inline constexpr std::uint32_t scale_block_columns = 4;   // of tensor memory
inline constexpr std::uint32_t operand_step_columns = 8;  // of A in tensor memory: 32 bytes of K, one instruction's

}  // namespace detail

/// Scale factors in shared memory, as `copy_scales` takes them: four along K (bytes) of each of `Rows` rows of A, or
/// columns of B. One instruction takes one, two or four of the four.
template <std::uint32_t Rows>
struct alignas(128) SharedScales {
    static_assert(Rows > 0, "tessera: scale factors need at least one row");
    /// Rows in blocks of 128.
    static constexpr std::uint32_t blocks = (Rows + detail::scale_rows - 1) / detail::scale_rows;

    std::byte bytes[blocks * detail::scale_block_bytes];  ///< those of row and k at `offset(row, k)`

    /// Where factor `k` (0 to 3) of a row lies.
    TESSERA_DETAIL_HOST_DEVICE static constexpr std::uint32_t offset(std::uint32_t row, std::uint32_t k) noexcept
    {
        return row / detail::scale_rows * detail::scale_block_bytes + row % 32 * 16 +
               row % detail::scale_rows / 32 * 4 + k;
    }
};

/// Scale factors in tensor memory, four along K of each of `Rows` rows: of A those rows that the CTA has (of a pair's
/// 256, its 128), of B all columns, in each CTA of a pair.
template <ScaledOperand Operand, std::uint32_t Rows, CtaGroup Group>
class TmemScales {
public:
    /// Columns of tensor memory that they take.
    static constexpr std::uint32_t columns = SharedScales<Rows>::blocks * detail::scale_block_columns;

    /// What the instruction is given.
    __device__ std::uint32_t address() const { return address_; }

private:
    template <class, std::uint32_t, CtaGroup>
    friend class Tmem;
    __device__ explicit TmemScales(std::uint32_t address) : address_(address) {}

    std::uint32_t address_;
};

/// A in tensor memory: row m in lane m (of a pair, each CTA its 128 rows), `Steps` instructions' worth of K (32 bytes
/// each) behind each other, in 8 columns each, packed without gaps.
template <std::uint32_t Steps, CtaGroup Group>
class TmemOperand {
public:
    /// Columns of tensor memory that it takes.
    static constexpr std::uint32_t columns = Steps * detail::operand_step_columns;

    /// What the instruction for this step along K is given.
    __device__ std::uint32_t address(std::uint32_t step) const
    {
        return address_ + step * detail::operand_step_columns;
    }

    /// Starts to write a step's 32 bytes of the calling warp's 32 rows: lane t gives those of row 32 * (warp % 4) + t.
    /// Executed by the whole warp. Before the tensor core reads them: `tcgen05_wait_stores`,
    /// `tcgen05_fence_before_sync` and an arrival at a barrier that the multiplying thread waits for.
    __device__ __forceinline__ void store_rows(std::uint32_t warp, std::uint32_t step,
                                               const RegisterTile<std::uint32_t, 8>& row) const
    {
        constexpr std::uint32_t lane_shift = 16;
        asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"r"(
                         address(step) + ((warp % 4 * 32) << lane_shift)),
                     "r"(row[0]), "r"(row[1]), "r"(row[2]), "r"(row[3]), "r"(row[4]), "r"(row[5]), "r"(row[6]),
                     "r"(row[7])
                     : "memory");
    }

private:
    template <class, std::uint32_t, CtaGroup>
    friend class Tmem;
    __device__ explicit TmemOperand(std::uint32_t address) : address_(address) {}

    std::uint32_t address_;
};

/// Waits until the warp's stores to tensor memory are done. Executed by the whole warp.
__device__ __forceinline__ void tcgen05_wait_stores() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

}  // namespace tessera
