#pragma once

/// @file
/// @ingroup device_tensor_memory
/// @brief What tensor memory holds besides accumulators: A of a matrix instruction, and scale factors of block-scaled
/// kinds.
///
/// Both are parts of an allocation, with types of their own; `Tmem` makes them.
///
/// @code{.cpp}
/// // Scale factors of 128 rows of A, in columns 256 to 259
/// const auto scales = tensor_memory.scales<ScaledOperand::a, 128, 256>();
/// if (elect_one()) {
///     copy_scales(scales, a_scales);  // before the instruction that uses them
/// }
/// @endcode
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

/// The operand that scale factors belong to.
enum class ScaledOperand : std::uint8_t {
    a,  ///< A: factors of its rows
    b   ///< B: factors of its columns
};

namespace detail {

inline constexpr std::uint32_t scale_rows = 128;          // rows whose scale factors are copied together
inline constexpr std::uint32_t scale_block_bytes = 512;   // four factors of each of these rows
inline constexpr std::uint32_t scale_block_columns = 4;   // their columns of tensor memory
inline constexpr std::uint32_t operand_step_columns = 8;  // columns of A for one instruction: 32 bytes of K

}  // namespace detail

/// Scale factors in shared memory, as `copy_scales` takes them: four along K (bytes) for each of `Rows` rows of A, or
/// columns of B. One instruction uses one, two or four of the four.
/// @tparam Rows  rows of A, or columns of B
template <std::uint32_t Rows>
struct alignas(128) SharedScales {
    static_assert(Rows > 0, "tessera: scale factors need at least one row");
    /// The number of blocks of 128 rows.
    static constexpr std::uint32_t blocks = (Rows + detail::scale_rows - 1) / detail::scale_rows;

    std::byte bytes[blocks * detail::scale_block_bytes];  ///< the factor of row and k is at `offset(row, k)`

    /// Returns where factor `k` (0 to 3) of a row is, in bytes.
    TESSERA_DETAIL_HOST_DEVICE static constexpr std::uint32_t offset(std::uint32_t row, std::uint32_t k) noexcept
    {
        return row / detail::scale_rows * detail::scale_block_bytes + row % 32 * 16 +
               row % detail::scale_rows / 32 * 4 + k;
    }
};

/// Scale factors in tensor memory, four along K for each of `Rows` rows. For A these are the rows that the CTA has (128
/// of a pair's 256); for B all columns, in each CTA of a pair.
/// @tparam Operand  whose scale factors
/// @tparam Rows     rows of A, or columns of B
/// @tparam Group    one CTA or a pair
template <ScaledOperand Operand, std::uint32_t Rows, CtaGroup Group>
class TmemScales {
public:
    /// The columns of tensor memory that the factors need.
    static constexpr std::uint32_t columns = SharedScales<Rows>::blocks * detail::scale_block_columns;

    /// Returns the address that the instruction takes.
    __device__ std::uint32_t address() const { return address_; }

private:
    template <class, std::uint32_t, CtaGroup>
    friend class Tmem;
    __device__ explicit TmemScales(std::uint32_t address) : address_(address) {}

    std::uint32_t address_;
};

/// A in tensor memory: row m is in lane m; in a pair, each CTA has its 128 rows. K is divided into `Steps` parts of 32
/// bytes, one for each instruction, which follow each other without gaps in 8 columns each.
/// @tparam Steps  number of instructions along K
/// @tparam Group  one CTA or a pair
template <std::uint32_t Steps, CtaGroup Group>
class TmemOperand {
public:
    /// The columns of tensor memory that the operand needs.
    static constexpr std::uint32_t columns = Steps * detail::operand_step_columns;

    /// Returns the address that the instruction for this step along K takes.
    __device__ std::uint32_t address(std::uint32_t step) const
    {
        return address_ + step * detail::operand_step_columns;
    }

    /// Starts to write a step's 32 bytes of the calling warp's 32 rows: lane t gives those of row 32 * (warp % 4) + t.
    /// Called by the whole, converged warp.
    ///
    /// Before the tensor core reads them, the writers need `tcgen05_wait_stores`, `tcgen05_fence_before_sync` and an
    /// arrival at a barrier that the thread which issues the MMAs waits for.
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

/// Waits until the warp's stores to tensor memory are done. Called by the whole, converged warp.
__device__ __forceinline__ void tcgen05_wait_stores() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

}  // namespace tessera
