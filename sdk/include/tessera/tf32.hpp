#pragma once

/// @file
/// @ingroup host_elements
/// @brief `tf32`, the 19-bit type of tensor cores in 32 bits of storage. Included by element.hpp.

#include <cstdint>
#include <type_traits>

#include "tessera/detail/element_type.hpp"
#include "tessera/detail/host_device.hpp"

namespace tessera {

namespace detail {

/// binary32 to tf32, round to nearest, ties away from zero. Overflow gives infinity; a NaN stays a quiet NaN of the
/// same sign.
TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t narrow_to_tf32(float value) noexcept
{
    constexpr std::uint32_t ignored = 0x1FFFU;
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
        return (bits | 0x400000U) & ~ignored;
    }
    return (bits + (ignored + 1) / 2) & ~ignored;  // a carry may reach the exponent, up to infinity's
}

}  // namespace detail

/// TensorFloat-32: 1 sign bit, 8 exponent bits, 10 significand bits, stored as the `float` with that value. It has the
/// range and size of `float` and the precision of `f16`.
///
/// Tensor cores ignore the 13 low bits, which are 0 in every tf32 made from a float. An f32 matrix that is viewed as
/// tf32 (`as_tf32`) has other bits there: a tensor-core kernel then computes with the truncated value, a SIMT kernel
/// with the whole value.
struct tf32 {
    std::uint32_t bits;  ///< the representation, that of a float

    /// Leaves the value undefined.
    tf32() = default;
    /// Rounds to nearest, ties away from zero, as `cvt.rna.tf32.f32` does. This is the only rounding to tf32 that all
    /// GPUs with tf32 have; ties to even came with sm_90.
    ///
    /// Uses integer operations instead of that instruction: they cost as little, run on every device, and keep a NaN,
    /// which the instruction may turn into infinity (measured on an H200).
    TESSERA_DETAIL_HOST_DEVICE constexpr explicit tf32(float value) noexcept : bits(detail::narrow_to_tf32(value)) {}

    /// Returns the number with this representation.
    TESSERA_DETAIL_HOST_DEVICE static constexpr tf32 from_bits(std::uint32_t representation) noexcept
    {
        tf32 result;
        result.bits = representation;
        return result;
    }

    /// Converts to float, exactly.
    TESSERA_DETAIL_HOST_DEVICE constexpr operator float() const noexcept { return __builtin_bit_cast(float, bits); }
};

static_assert(sizeof(tf32) == sizeof(float) && alignof(tf32) == alignof(float) && std::is_trivially_copyable_v<tf32>);

}  // namespace tessera
