#pragma once

/// @file
/// @ingroup host_elements
/// @brief Element types of matrices: f32, f16, bf16, f8e4m3 and f8e5m2, and for the operands A and B also tf32.
///
/// All but `f32` are storage with conversions, not arithmetic types: compute in `float`. Narrowing rounds to nearest
/// and is explicit; widening is exact and implicit. The types have the size, alignment and bits of CUDA's `__half`,
/// `__nv_bfloat16`, `__nv_fp8_e4m3` and `__nv_fp8_e5m2`, and convert from and to them without including CUDA's headers
/// here.
///
/// `ElementType` names a type at run time.
///
/// @code{.cpp}
/// const bf16 rounded(1.0F / 3);   // rounds to nearest
/// const float widened = rounded;  // exact
/// const f16 one = f16::from_bits(0x3C00);
/// @endcode

// Compiler built-ins replace std::bit_cast and std::is_constant_evaluated: device code cannot call those without
// --expt-relaxed-constexpr, a flag that a header should not force on its users.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#ifndef __CUDACC_RTC__
#include <string_view>
#endif

#include "tessera/detail/element_type.hpp"
#include "tessera/detail/host_device.hpp"
#include "tessera/float8.hpp"
#include "tessera/tf32.hpp"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
struct __half;         // NOLINT(bugprone-reserved-identifier): CUDA's name
struct __nv_bfloat16;  // NOLINT(bugprone-reserved-identifier)
#endif

namespace tessera {

/// IEEE binary32.
using f32 = float;

namespace detail {

/// binary32 to binary16, round to nearest even. Overflow gives infinity; a NaN stays a quiet NaN of the same sign.
TESSERA_DETAIL_HOST_DEVICE constexpr std::uint16_t narrow_to_f16(float value) noexcept
{
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) {
        return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x1FFU));
    }
    if (magnitude >= 0x477FF000U) {  // 65520 and above round to infinity
        return static_cast<std::uint16_t>(sign | 0x7C00U);
    }
    if (magnitude < 0x33000001U) {  // at most half of the smallest subnormal: rounds to zero
        return static_cast<std::uint16_t>(sign);
    }
    const std::uint32_t exponent = magnitude >> 23;
    // Normal results drop 13 significand bits; subnormal ones (binary32 exponent below 113) drop more.
    const std::uint32_t dropped = exponent >= 113 ? 13U : 126U - exponent;
    const std::uint32_t significand = (magnitude & 0x7FFFFFU) | 0x800000U;
    const std::uint32_t kept = significand >> dropped;
    const std::uint32_t remainder = significand & ((1U << dropped) - 1U);
    const std::uint32_t half = 1U << (dropped - 1U);
    const std::uint32_t round_up = (remainder > half || (remainder == half && (kept & 1U) != 0)) ? 1U : 0U;
    // For a normal result `kept` still holds the hidden bit, worth one exponent step: hence 113, not 112.
    const std::uint32_t biased = exponent >= 113 ? (exponent - 113U) << 10 : 0U;
    return static_cast<std::uint16_t>(sign | (biased + kept + round_up));
}

/// binary16 to binary32, exact.
TESSERA_DETAIL_HOST_DEVICE constexpr float widen_from_f16(std::uint16_t bits) noexcept
{
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1FU;
    std::uint32_t significand = bits & 0x3FFU;
    if (exponent == 0x1FU) {
        return __builtin_bit_cast(float, sign | 0x7F800000U | (significand << 13));
    }
    if (exponent != 0) {
        return __builtin_bit_cast(float, sign | ((exponent + 112U) << 23) | (significand << 13));
    }
    if (significand == 0) {
        return __builtin_bit_cast(float, sign);
    }
    std::uint32_t shifted_exponent = 113U;  // normalize a subnormal
    while ((significand & 0x400U) == 0) {
        significand <<= 1;
        --shifted_exponent;
    }
    return __builtin_bit_cast(float, sign | (shifted_exponent << 23) | ((significand & 0x3FFU) << 13));
}

/// binary32 to bfloat16, round to nearest even. A NaN stays a quiet NaN of the same sign.
TESSERA_DETAIL_HOST_DEVICE constexpr std::uint16_t narrow_to_bf16(float value) noexcept
{
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
        return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
    }
    const std::uint32_t round = 0x7FFFU + ((bits >> 16) & 1U);
    return static_cast<std::uint16_t>((bits + round) >> 16);
}

/// bfloat16 to binary32, exact.
TESSERA_DETAIL_HOST_DEVICE constexpr float widen_from_bf16(std::uint16_t bits) noexcept
{
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace detail

/// IEEE binary16: 1 sign bit, 5 exponent bits, 10 significand bits. The largest finite value is 65504.
struct f16 {
    std::uint16_t bits;  ///< the representation

    /// Leaves the value undefined.
    f16() = default;
    /// Rounds to nearest, ties to even. Overflow gives infinity; NaN stays NaN.
    TESSERA_DETAIL_HOST_DEVICE constexpr explicit f16(float value) noexcept
    {
#ifdef __CUDA_ARCH__
        if (!__builtin_is_constant_evaluated()) {
            bits = __half_as_ushort(__float2half_rn(value));
            return;
        }
#endif
        bits = detail::narrow_to_f16(value);
    }
    /// Converts from CUDA's `__half`, bit by bit.
    template <std::same_as<__half> Half>
    TESSERA_DETAIL_HOST_DEVICE f16(const Half& value) noexcept : bits(__builtin_bit_cast(std::uint16_t, value))
    {}

    /// Returns the number with this representation.
    TESSERA_DETAIL_HOST_DEVICE static constexpr f16 from_bits(std::uint16_t representation) noexcept
    {
        f16 result;
        result.bits = representation;
        return result;
    }

    /// Converts to float, exactly.
    TESSERA_DETAIL_HOST_DEVICE constexpr operator float() const noexcept
    {
#ifdef __CUDA_ARCH__
        if (!__builtin_is_constant_evaluated()) {
            return __half2float(__ushort_as_half(bits));
        }
#endif
        return detail::widen_from_f16(bits);
    }
    /// Converts to CUDA's `__half`, bit by bit.
    template <std::same_as<__half> Half>
    TESSERA_DETAIL_HOST_DEVICE explicit operator Half() const noexcept
    {
        return __builtin_bit_cast(Half, bits);
    }
};

/// bfloat16, the upper half of a binary32: 1 sign bit, 8 exponent bits, 7 significand bits. The range of `float` with a
/// precision of about 3 digits.
struct bf16 {
    std::uint16_t bits;  ///< the representation

    /// Leaves the value undefined.
    bf16() = default;
    /// Rounds to nearest, ties to even. Overflow gives infinity; NaN stays NaN.
    TESSERA_DETAIL_HOST_DEVICE constexpr explicit bf16(float value) noexcept
    {
#ifdef __CUDA_ARCH__
        if (!__builtin_is_constant_evaluated()) {
            bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
            return;
        }
#endif
        bits = detail::narrow_to_bf16(value);
    }
    /// Converts from CUDA's `__nv_bfloat16`, bit by bit.
    template <std::same_as<__nv_bfloat16> Bfloat16>
    TESSERA_DETAIL_HOST_DEVICE bf16(const Bfloat16& value) noexcept : bits(__builtin_bit_cast(std::uint16_t, value))
    {}

    /// Returns the number with this representation.
    TESSERA_DETAIL_HOST_DEVICE static constexpr bf16 from_bits(std::uint16_t representation) noexcept
    {
        bf16 result;
        result.bits = representation;
        return result;
    }

    /// Converts to float, exactly.
    TESSERA_DETAIL_HOST_DEVICE constexpr operator float() const noexcept { return detail::widen_from_bf16(bits); }
    /// Converts to CUDA's `__nv_bfloat16`, bit by bit.
    template <std::same_as<__nv_bfloat16> Bfloat16>
    TESSERA_DETAIL_HOST_DEVICE explicit operator Bfloat16() const noexcept
    {
        return __builtin_bit_cast(Bfloat16, bits);
    }
};

/// Returns the bytes of one element.
TESSERA_DETAIL_HOST_DEVICE constexpr std::size_t size_of(ElementType type) noexcept
{
    switch (type) {
        case ElementType::f16:
        case ElementType::bf16: return 2;
        case ElementType::f8e4m3:
        case ElementType::f8e5m2: return 1;
        case ElementType::f32:
        case ElementType::tf32: break;
    }
    return 4;
}

#ifndef __CUDACC_RTC__
/// Returns "f32", "f16", "bf16", "tf32", "f8e4m3" or "f8e5m2".
constexpr std::string_view to_string(ElementType type) noexcept
{
    switch (type) {
        case ElementType::f32: return "f32";
        case ElementType::f16: return "f16";
        case ElementType::bf16: return "bf16";
        case ElementType::tf32: return "tf32";
        case ElementType::f8e4m3: return "f8e4m3";
        case ElementType::f8e5m2: return "f8e5m2";
    }
    return "unknown";
}
#endif

/// Returns true for `f8e4m3` and `f8e5m2`: A and B may mix these two.
TESSERA_DETAIL_HOST_DEVICE constexpr bool is_float8(ElementType type) noexcept
{
    return type == ElementType::f8e4m3 || type == ElementType::f8e5m2;
}

/// Returns true if C and a bias can have this type: `f32`, `f16` and `bf16`.
TESSERA_DETAIL_HOST_DEVICE constexpr bool is_addend(ElementType type) noexcept
{
    return type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16;
}

/// Returns true if D can have this type: every type but `tf32`.
TESSERA_DETAIL_HOST_DEVICE constexpr bool is_output(ElementType type) noexcept
{
    return is_addend(type) || is_float8(type);
}

/// Facts about an element type, for matrix elements only: `element_traits<T>::type` is its run-time name.
template <class T>
struct element_traits;
/// Facts about f32.
template <>
struct element_traits<f32> {
    static constexpr ElementType type = ElementType::f32;  ///< the run-time name
    static constexpr float unit_roundoff = 0x1p-24F;       ///< largest relative error of one rounding
};
/// Facts about f16.
template <>
struct element_traits<f16> {
    static constexpr ElementType type = ElementType::f16;  ///< the run-time name
    static constexpr float unit_roundoff = 0x1p-11F;       ///< largest relative error of one rounding
};
/// Facts about bf16.
template <>
struct element_traits<bf16> {
    static constexpr ElementType type = ElementType::bf16;  ///< the run-time name
    static constexpr float unit_roundoff = 0x1p-8F;         ///< largest relative error of one rounding
};

/// Facts about tf32.
template <>
struct element_traits<tf32> {
    static constexpr ElementType type = ElementType::tf32;  ///< the run-time name
    static constexpr float unit_roundoff = 0x1p-11F;        ///< largest relative error of one rounding
};
/// Facts about f8e4m3.
template <>
struct element_traits<f8e4m3> {
    static constexpr ElementType type = ElementType::f8e4m3;  ///< the run-time name
    static constexpr float unit_roundoff = 0x1p-4F;           ///< largest relative error of one rounding
};
/// Facts about f8e5m2.
template <>
struct element_traits<f8e5m2> {
    static constexpr ElementType type = ElementType::f8e5m2;  ///< the run-time name
    static constexpr float unit_roundoff = 0x1p-3F;           ///< largest relative error of one rounding
};

/// A type that the operands A and B of `Gemm::launch` can have. CUDA's own types are viewed as the SDK's.
template <class T>
concept MatrixElement = requires { element_traits<std::remove_const_t<T>>::type; };

/// A type that D can have: every matrix element but `tf32`.
template <class T>
concept OutputElement = MatrixElement<T> && is_output(element_traits<std::remove_const_t<T>>::type);

/// A type that C and a bias can have: `f32`, `f16` or `bf16`. An 8-bit vector would need a scale.
template <class T>
concept AddendElement = MatrixElement<T> && is_addend(element_traits<std::remove_const_t<T>>::type);

/// The element types of A and B: equal, or one `f8e4m3` and the other `f8e5m2`. Both have the same size.
struct InputTypes {
    ElementType a = ElementType::f32;  ///< type of A
    ElementType b = ElementType::f32;  ///< type of B

    /// f32 for both.
    InputTypes() = default;
    /// The same type for both.
    TESSERA_DETAIL_HOST_DEVICE constexpr InputTypes(ElementType both) noexcept : a(both), b(both) {}
    /// One type for each.
    TESSERA_DETAIL_HOST_DEVICE constexpr InputTypes(ElementType of_a, ElementType of_b) noexcept : a(of_a), b(of_b) {}

    /// Returns true if the types of A are equal, and those of B.
    friend bool operator==(const InputTypes&, const InputTypes&) = default;
};

namespace detail {

/// CUDA's own type for an element type of the SDK, with the same bits.
template <class T>
struct vendor_element {};
template <>
struct vendor_element<f16> {
    using type = __half;
};
template <>
struct vendor_element<bf16> {
    using type = __nv_bfloat16;
};
template <>
struct vendor_element<f8e4m3> {
    using type = __nv_fp8_e4m3;
};
template <>
struct vendor_element<f8e5m2> {
    using type = __nv_fp8_e5m2;
};

/// True if `T`, perhaps const, is CUDA's own type for `Element`.
template <class T, class Element>
inline constexpr bool is_vendor_element =
    std::is_same_v<std::remove_const_t<T>, typename vendor_element<std::remove_const_t<Element>>::type>;

template <class T>
struct element_of {
    using type = T;
};
template <>
struct element_of<__half> {
    using type = f16;
};
template <>
struct element_of<__nv_bfloat16> {
    using type = bf16;
};
template <>
struct element_of<__nv_fp8_e4m3> {
    using type = f8e4m3;
};
template <>
struct element_of<__nv_fp8_e5m2> {
    using type = f8e5m2;
};
template <class T>
struct element_of<const T> {
    using type = const typename element_of<T>::type;
};

/// The SDK's type for one of CUDA's, any other type unchanged; const stays.
template <class T>
using ElementOf = typename element_of<T>::type;

/// CUDA's own type for elements of `T`; a pointer to it converts to a pointer to `T`.
template <class Vendor, class T>
concept VendorElementOf = !std::same_as<Vendor, ElementOf<Vendor>> && std::convertible_to<ElementOf<Vendor>*, T*> &&
                          std::same_as<std::remove_const_t<ElementOf<Vendor>>, std::remove_const_t<T>>;

}  // namespace detail

/// Returns the bytes of one element of A or B.
TESSERA_DETAIL_HOST_DEVICE constexpr std::size_t size_of(InputTypes types) noexcept { return size_of(types.a); }

/// Returns true if A and B have 8-bit elements.
TESSERA_DETAIL_HOST_DEVICE constexpr bool is_float8(InputTypes types) noexcept
{
    return is_float8(types.a) && is_float8(types.b);
}

/// Returns true if matrices of these types can be multiplied.
TESSERA_DETAIL_HOST_DEVICE constexpr bool can_multiply(InputTypes types) noexcept
{
    return types.a == types.b || is_float8(types);
}

static_assert(sizeof(f16) == 2 && std::is_trivially_copyable_v<f16>);
static_assert(sizeof(bf16) == 2 && std::is_trivially_copyable_v<bf16>);

}  // namespace tessera
