/// Element types: every bit pattern, and rounding around every value, against independent computations.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "tessera/element.hpp"

namespace {

using tessera::bf16;
using tessera::f16;

/// The formats as their standards define them, without the SDK's bit manipulations.
template <class Element>
struct Format;
template <>
struct Format<f16> {
    static constexpr int significand_bits = 10;
    static constexpr int exponent_bias = 15;
    static constexpr unsigned exponent_mask = 0x1F;
    using Cuda = __half;
    static Cuda to_cuda(float value) { return __float2half_rn(value); }
    static float from_cuda(Cuda value) { return __half2float(value); }
};
template <>
struct Format<bf16> {
    static constexpr int significand_bits = 7;
    static constexpr int exponent_bias = 127;
    static constexpr unsigned exponent_mask = 0xFF;
    using Cuda = __nv_bfloat16;
    static Cuda to_cuda(float value) { return __float2bfloat16_rn(value); }
    static float from_cuda(Cuda value) { return __bfloat162float(value); }
};

constexpr unsigned pattern_count = 0x10000;

template <class Element>
Element element(unsigned pattern)
{
    return Element::from_bits(static_cast<std::uint16_t>(pattern));
}

template <class Element>
bool is_nan_pattern(unsigned pattern)
{
    using F = Format<Element>;
    const unsigned significand = pattern & ((1U << F::significand_bits) - 1);
    return ((pattern >> F::significand_bits) & F::exponent_mask) == F::exponent_mask && significand != 0;
}

/// The value of a pattern that is not NaN, by definition: significand * 2^exponent.
template <class Element>
double value_of(unsigned pattern)
{
    using F = Format<Element>;
    const auto significand = static_cast<int>(pattern & ((1U << F::significand_bits) - 1));
    const auto exponent = static_cast<int>((pattern >> F::significand_bits) & F::exponent_mask);
    const double sign = (pattern & 0x8000U) != 0 ? -1.0 : 1.0;
    if (exponent == static_cast<int>(F::exponent_mask)) {
        return sign * std::numeric_limits<double>::infinity();
    }
    const int hidden = exponent == 0 ? 0 : 1 << F::significand_bits;
    const int scale = (exponent == 0 ? 1 : exponent) - F::exponent_bias - F::significand_bits;
    return sign * std::ldexp(significand + hidden, scale);
}

/// The pattern of the largest finite magnitude.
template <class Element>
constexpr unsigned largest_finite = (Format<Element>::exponent_mask << Format<Element>::significand_bits) - 1;

/// Rounds to nearest, ties to even, by a search: patterns of one sign ascend with their values. Infinity takes the
/// place of the value after the largest finite one.
template <class Element>
std::uint16_t nearest_even(double value)
{
    const unsigned sign = std::signbit(value) ? 0x8000U : 0U;
    const double magnitude = std::abs(value);
    const double limit =
        2 * value_of<Element>(largest_finite<Element>) - value_of<Element>(largest_finite<Element> - 1);
    const auto magnitude_of = [&](unsigned pattern) {
        return pattern > largest_finite<Element> ? limit : value_of<Element>(pattern);
    };
    unsigned low = 0;
    unsigned high = largest_finite<Element> + 1;
    if (magnitude >= limit) {
        return static_cast<std::uint16_t>(sign | high);
    }
    while (high - low > 1) {  // magnitude_of(low) <= magnitude < magnitude_of(high)
        const unsigned middle = (low + high) / 2;
        (magnitude_of(middle) <= magnitude ? low : high) = middle;
    }
    const double below = magnitude - magnitude_of(low);  // exact: both are multiples of a common power of two
    const double above = magnitude_of(high) - magnitude;
    const bool up = above < below || (above == below && low % 2 != 0);
    return static_cast<std::uint16_t>(sign | (up ? high : low));
}

}  // namespace

TEST_CASE_TEMPLATE("each of the 65,536 patterns widens to the value that the format defines", Element, f16, bf16)
{
    unsigned wrong = 0;
    for (unsigned pattern = 0; pattern < pattern_count; ++pattern) {
        const float widened = element<Element>(pattern);
        if (is_nan_pattern<Element>(pattern)) {
            wrong += std::isnan(widened) && std::signbit(widened) == (pattern >= 0x8000U) ? 0U : 1U;
        } else {
            const double expected = value_of<Element>(pattern);
            wrong += widened == expected && std::signbit(widened) == std::signbit(expected) ? 0U : 1U;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("every pattern survives widening and narrowing, and a signalling NaN becomes quiet", Element, f16,
                   bf16)
{
    constexpr unsigned quiet_bit = 1U << (Format<Element>::significand_bits - 1);
    unsigned wrong = 0;
    for (unsigned pattern = 0; pattern < pattern_count; ++pattern) {
        const unsigned expected = is_nan_pattern<Element>(pattern) ? pattern | quiet_bit : pattern;
        wrong += Element(static_cast<float>(element<Element>(pattern))).bits == expected ? 0U : 1U;
    }
    CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("between any two neighbours, narrowing rounds to the nearest and ties to even", Element, f16, bf16)
{
    unsigned wrong = 0;
    for (unsigned pattern = 0; pattern < largest_finite<Element>; ++pattern) {
        const double middle = (value_of<Element>(pattern) + value_of<Element>(pattern + 1)) / 2;
        // Exact as float, except between the smallest bf16 subnormals. There the nearest floats are 1 ulp away.
        const auto tie = static_cast<float>(middle);
        REQUIRE(static_cast<double>(tie) == middle);
        const float below = std::nextafter(tie, 0.0F);
        const float above = std::nextafter(tie, std::numeric_limits<float>::infinity());
        const unsigned even = pattern % 2 == 0 ? pattern : pattern + 1;
        const bool right = Element(below).bits == pattern && Element(tie).bits == even &&
                           Element(above).bits == pattern + 1 && Element(-below).bits == (pattern | 0x8000U) &&
                           Element(-tie).bits == (even | 0x8000U) && Element(-above).bits == ((pattern + 1) | 0x8000U);
        wrong += right ? 0U : 1U;
    }
    CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("narrowing agrees with an exact search, and with CUDA's host conversions, for random floats",
                   Element, f16, bf16)
{
    using F = Format<Element>;
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    constexpr int searched = 500'000;
    constexpr int compared = 4'000'000;
    unsigned wrong = 0;
    for (int i = 0; i < compared; ++i) {
        // Half of the numbers over all of float's range, half near the range of binary16.
        const auto any = static_cast<std::uint32_t>(random());
        const std::uint32_t near_one = (any & 0x807FFFFFU) | ((100 + (any >> 23) % 48) << 23U);
        const auto value = std::bit_cast<float>(i % 2 == 0 ? any : near_one);
        const Element narrowed(value);
        if (std::isnan(value)) {
            wrong +=
                is_nan_pattern<Element>(narrowed.bits) && std::signbit(value) == (narrowed.bits >= 0x8000U) ? 0U : 1U;
            continue;  // CUDA's host code gives one canonical NaN instead
        }
        wrong += narrowed.bits == std::bit_cast<std::uint16_t>(F::to_cuda(value)) ? 0U : 1U;
        if (i < searched) {
            wrong += narrowed.bits == nearest_even<Element>(value) ? 0U : 1U;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("CUDA's host code widens every pattern to the same value", Element, f16, bf16)
{
    using F = Format<Element>;
    unsigned wrong = 0;
    for (unsigned pattern = 0; pattern < pattern_count; ++pattern) {
        const auto cuda = std::bit_cast<typename F::Cuda>(static_cast<std::uint16_t>(pattern));
        const float theirs = F::from_cuda(cuda);
        const float ours = element<Element>(pattern);
        wrong += theirs == ours || (std::isnan(theirs) && std::isnan(ours)) ? 0U : 1U;
    }
    CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("CUDA's 16-bit types convert from and to the SDK's without a change of bits", Element, f16, bf16)
{
    using Cuda = typename Format<Element>::Cuda;
    unsigned wrong = 0;
    for (unsigned pattern = 0; pattern < pattern_count; ++pattern) {
        const auto bits = static_cast<std::uint16_t>(pattern);
        const Element ours = std::bit_cast<Cuda>(bits);
        const auto theirs = static_cast<Cuda>(element<Element>(pattern));
        wrong += ours.bits == bits && std::bit_cast<std::uint16_t>(theirs) == bits ? 0U : 1U;
    }
    CHECK(wrong == 0);
    static_assert(std::is_convertible_v<Cuda, Element>);
    static_assert(std::is_constructible_v<Cuda, Element>);
    static_assert(sizeof(Cuda) == sizeof(Element) && alignof(Cuda) == alignof(Element));
}

TEST_CASE("the ends of the ranges round according to IEEE 754")
{
    constexpr float infinity = std::numeric_limits<float>::infinity();
    CHECK(f16(65504.0F).bits == 0x7BFF);
    CHECK(f16(std::nextafter(65520.0F, 0.0F)).bits == 0x7BFF);
    CHECK(f16(65520.0F).bits == 0x7C00);
    CHECK(f16(-65520.0F).bits == 0xFC00);
    CHECK(f16(infinity).bits == 0x7C00);
    CHECK(f16(0x1p-24F).bits == 0x0001);
    CHECK(f16(0x1p-25F).bits == 0x0000);
    CHECK(f16(std::nextafter(0x1p-25F, 1.0F)).bits == 0x0001);
    CHECK(f16(-0x1p-25F).bits == 0x8000);
    CHECK(f16(-0.0F).bits == 0x8000);
    CHECK(bf16(std::numeric_limits<float>::max()).bits == 0x7F80);
    CHECK(bf16(-infinity).bits == 0xFF80);
    CHECK(bf16(std::numeric_limits<float>::denorm_min()).bits == 0x0000);
    // A NaN with its payload in the dropped bits only must not become an infinity.
    CHECK(f16(std::bit_cast<float>(0x7F800001U)).bits == 0x7E00);
    CHECK(f16(std::bit_cast<float>(0xFF800001U)).bits == 0xFE00);
    CHECK(bf16(std::bit_cast<float>(0x7F800001U)).bits == 0x7FC0);
    CHECK(bf16(std::bit_cast<float>(0xFF800001U)).bits == 0xFFC0);
}

TEST_CASE("conversions are constant expressions")
{
    static_assert(f16(1.0F).bits == 0x3C00);
    static_assert(static_cast<float>(f16::from_bits(0x0001)) == 0x1p-24F);
    static_assert(bf16(1.0F).bits == 0x3F80);
    static_assert(static_cast<float>(bf16::from_bits(0xC000)) == -2.0F);
    static_assert(tessera::size_of(tessera::ElementType::f32) == 4 && tessera::size_of(tessera::ElementType::f16) == 2);
    static_assert(tessera::element_traits<f16>::unit_roundoff == 0x1p-11F);
    static_assert(tessera::element_traits<bf16>::unit_roundoff == 0x1p-8F);
    static_assert(tessera::MatrixElement<const f16> && tessera::MatrixElement<float> && !tessera::MatrixElement<int>);
    static_assert(!std::is_convertible_v<float, f16> && std::is_convertible_v<f16, float>);
}

TEST_CASE("element types have names")
{
    CHECK(to_string(tessera::ElementType::f32) == "f32");
    CHECK(to_string(tessera::ElementType::f16) == "f16");
    CHECK(to_string(tessera::ElementType::bf16) == "bf16");
    CHECK(to_string(static_cast<tessera::ElementType>(9)) == "unknown");
}
