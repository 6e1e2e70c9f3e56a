#pragma once

/// @file
/// @ingroup host_elements
/// @brief The 8-bit floating-point types `f8e4m3` and `f8e5m2`. Included by element.hpp.
///
/// Like the other element types they are storage with conversions. The formats are those of the OCP 8-bit Floating
/// Point Specification 1.0. Narrowing does what `cvt.rn.satfinite.{e4m3x2,e5m2x2}.f32` does (PTX ISA, "cvt"): it rounds
/// to nearest, ties to even; what is too large, infinity included, becomes the largest finite value of its sign; every
/// NaN becomes 0x7F. It saturates because e4m3 has no infinity, and because a tensor that is scaled into 8 bits wants
/// its largest value there, not NaN. Widening is exact.

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "tessera/detail/element_type.hpp"
#include "tessera/detail/host_device.hpp"

#ifdef __CUDACC__
#include <cuda_fp8.h>
#else
struct __nv_fp8_e4m3;  // NOLINT(bugprone-reserved-identifier): CUDA's name
struct __nv_fp8_e5m2;  // NOLINT(bugprone-reserved-identifier)
#endif

namespace tessera {

namespace detail {

/// An 8-bit format: sign, `7 - significand_bits` exponent bits, `significand_bits`.
struct Float8Format {
    std::uint32_t significand_bits;
    std::uint32_t bias;
    std::uint32_t largest;   // code of the largest finite value
    std::uint32_t infinity;  // magnitude code of infinity; beyond all codes if there is none
    std::uint32_t nan;       // the smallest magnitude code of a NaN
};

inline constexpr Float8Format e4m3_format{3, 7, 0x7E, 0x100, 0x7F};
inline constexpr Float8Format e5m2_format{2, 15, 0x7B, 0x7C, 0x7D};

/// binary32 to 8 bits, round to nearest even, saturating.
template <Float8Format Format>
TESSERA_DETAIL_HOST_DEVICE constexpr std::uint8_t narrow_to_float8(float value) noexcept
{
    constexpr std::uint32_t always_dropped = 23 - Format.significand_bits;
    constexpr std::uint32_t lowest_normal = 127 + 1 - Format.bias;  // as an exponent of binary32
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t sign = (bits >> 24) & 0x80U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) {
        return 0x7F;
    }
    const std::uint32_t exponent = magnitude >> 23;
    const bool normal = exponent >= lowest_normal;
    const std::uint32_t dropped = always_dropped + (normal ? 0U : lowest_normal - exponent);
    if (dropped > 24) {  // less than half of the smallest subnormal
        return static_cast<std::uint8_t>(sign);
    }
    const std::uint32_t significand = (magnitude & 0x7FFFFFU) | 0x800000U;
    const std::uint32_t kept = significand >> dropped;
    const std::uint32_t remainder = significand & ((1U << dropped) - 1U);
    const std::uint32_t half = 1U << (dropped - 1U);
    const std::uint32_t round_up = (remainder > half || (remainder == half && (kept & 1U) != 0)) ? 1U : 0U;
    // For a normal result `kept` still holds the hidden bit, worth one exponent step.
    const std::uint32_t biased = normal ? (exponent - lowest_normal) << Format.significand_bits : 0U;
    const std::uint32_t code = biased + kept + round_up;
    return static_cast<std::uint8_t>(sign | (code < Format.largest ? code : Format.largest));
}

/// 8 bits to binary32, exact. A NaN becomes 0x7FFFFFFF, the NaN of PTX instructions. Has no loop, and makes no
/// subnormal float, which a compiler may have been told to flush.
template <Float8Format Format>
TESSERA_DETAIL_HOST_DEVICE constexpr float widen_from_float8(std::uint8_t bits) noexcept
{
    constexpr float smallest = __builtin_bit_cast(float, (127 + 1 - Format.bias - Format.significand_bits) << 23);
    constexpr std::uint32_t rebias = (127 - Format.bias) << 23;
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x80U) << 24;
    const std::uint32_t magnitude = bits & 0x7FU;
    if (magnitude >= Format.nan) {
        return __builtin_bit_cast(float, 0x7FFFFFFFU);
    }
    if (magnitude == Format.infinity) {
        return __builtin_bit_cast(float, sign | 0x7F800000U);
    }
    const float subnormal = static_cast<float>(magnitude) * smallest;
    const std::uint32_t value = magnitude >> Format.significand_bits == 0
                                    ? __builtin_bit_cast(std::uint32_t, subnormal)
                                    : rebias + (magnitude << (23 - Format.significand_bits));
    return __builtin_bit_cast(float, sign | value);
}

}  // namespace detail

/// OCP E4M3 (CUDA's `__nv_fp8_e4m3`): 1 sign bit, 4 exponent bits, 3 significand bits. The largest finite value is 448;
/// there is no infinity; NaN is 0x7F and 0xFF.
struct f8e4m3 {
    std::uint8_t bits;  ///< the representation

    /// Leaves the value undefined.
    f8e4m3() = default;
    /// Rounds to nearest, ties to even. Saturates at +-448.
    TESSERA_DETAIL_HOST_DEVICE constexpr explicit f8e4m3(float value) noexcept
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890  // before sm_89, CUDA's intrinsic converts through double
        if (!__builtin_is_constant_evaluated()) {
            bits = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
            return;
        }
#endif
        bits = detail::narrow_to_float8<detail::e4m3_format>(value);
    }
    /// Converts from CUDA's `__nv_fp8_e4m3`, bit by bit.
    template <std::same_as<__nv_fp8_e4m3> Float8>
    TESSERA_DETAIL_HOST_DEVICE f8e4m3(const Float8& value) noexcept : bits(__builtin_bit_cast(std::uint8_t, value))
    {}

    /// Returns the number with this representation.
    TESSERA_DETAIL_HOST_DEVICE static constexpr f8e4m3 from_bits(std::uint8_t representation) noexcept
    {
        f8e4m3 result;
        result.bits = representation;
        return result;
    }

    /// Converts to float, exactly.
    TESSERA_DETAIL_HOST_DEVICE constexpr operator float() const noexcept
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
        if (!__builtin_is_constant_evaluated()) {
            return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, __NV_E4M3)));
        }
#endif
        return detail::widen_from_float8<detail::e4m3_format>(bits);
    }
    /// Converts to CUDA's `__nv_fp8_e4m3`, bit by bit.
    template <std::same_as<__nv_fp8_e4m3> Float8>
    TESSERA_DETAIL_HOST_DEVICE explicit operator Float8() const noexcept
    {
        return __builtin_bit_cast(Float8, bits);
    }
};

/// OCP E5M2 (CUDA's `__nv_fp8_e5m2`), the upper byte of a binary16: 1 sign bit, 5 exponent bits, 2 significand bits.
/// The largest finite value is 57344.
struct f8e5m2 {
    std::uint8_t bits;  ///< the representation

    /// Leaves the value undefined.
    f8e5m2() = default;
    /// Rounds to nearest, ties to even. Saturates at +-57344, infinity included.
    TESSERA_DETAIL_HOST_DEVICE constexpr explicit f8e5m2(float value) noexcept
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890  // before sm_89, CUDA's intrinsic converts through double
        if (!__builtin_is_constant_evaluated()) {
            bits = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
            return;
        }
#endif
        bits = detail::narrow_to_float8<detail::e5m2_format>(value);
    }
    /// Converts from CUDA's `__nv_fp8_e5m2`, bit by bit.
    template <std::same_as<__nv_fp8_e5m2> Float8>
    TESSERA_DETAIL_HOST_DEVICE f8e5m2(const Float8& value) noexcept : bits(__builtin_bit_cast(std::uint8_t, value))
    {}

    /// Returns the number with this representation.
    TESSERA_DETAIL_HOST_DEVICE static constexpr f8e5m2 from_bits(std::uint8_t representation) noexcept
    {
        f8e5m2 result;
        result.bits = representation;
        return result;
    }

    /// Converts to float, exactly.
    TESSERA_DETAIL_HOST_DEVICE constexpr operator float() const noexcept
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
        if (!__builtin_is_constant_evaluated()) {
            return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, __NV_E5M2)));
        }
#endif
        return detail::widen_from_float8<detail::e5m2_format>(bits);
    }
    /// Converts to CUDA's `__nv_fp8_e5m2`, bit by bit.
    template <std::same_as<__nv_fp8_e5m2> Float8>
    TESSERA_DETAIL_HOST_DEVICE explicit operator Float8() const noexcept
    {
        return __builtin_bit_cast(Float8, bits);
    }
};

static_assert(sizeof(f8e4m3) == 1 && std::is_trivially_copyable_v<f8e4m3>);
static_assert(sizeof(f8e5m2) == 1 && std::is_trivially_copyable_v<f8e5m2>);

}  // namespace tessera
