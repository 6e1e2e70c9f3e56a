#pragma once

/// `tf32`, the 19-bit type of tensor cores in 32 bits of storage: storage with conversions, as the types of
/// element.hpp, which includes this file.

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
    return (bits + (ignored + 1) / 2) & ~ignored;  // a carry walks into the exponent, up to infinity's
}

}  // namespace detail

/// TensorFloat-32: 1 sign, 8 exponent, 10 significand bits, stored as the `float` of that value: the range of `float`,
/// the precision of `f16`, at `float`'s size.
///
/// Tensor cores ignore the 13 low bits, which are 0 in every tf32 that was made from a float. Memory of f32 that is
/// viewed as tf32 (`as_tf32`) has others: a kernel for tensor cores then computes with the truncated value, a SIMT
/// kernel with the whole one.
struct tf32 {
    std::uint32_t bits;  ///< the representation, that of a float

    tf32() = default;
    /// Rounds to nearest, ties away from zero, as `cvt.rna.tf32.f32` does: the one rounding to tf32 that all GPUs with
    /// tf32 have (ties to even came with sm_90). Integer operations and not that instruction: they cost as little, also
    /// run where it is missing, and keep a NaN, of which the instruction may make infinity (measured on an H200).
    TESSERA_DETAIL_HOST_DEVICE constexpr explicit tf32(float value) noexcept : bits(detail::narrow_to_tf32(value)) {}

    /// The number with this representation.
    TESSERA_DETAIL_HOST_DEVICE static constexpr tf32 from_bits(std::uint32_t representation) noexcept
    {
        tf32 result;
        result.bits = representation;
        return result;
    }

    /// Exact.
    TESSERA_DETAIL_HOST_DEVICE constexpr operator float() const noexcept { return __builtin_bit_cast(float, bits); }
};

static_assert(sizeof(tf32) == sizeof(float) && alignof(tf32) == alignof(float) && std::is_trivially_copyable_v<tf32>);

}  // namespace tessera
