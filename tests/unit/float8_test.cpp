/// f8e4m3, f8e5m2 and tf32: every bit pattern, and rounding around every value, against independent computations.

#include <cuda_fp8.h>
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "tessera/element.hpp"

namespace {

using tessera::f8e4m3;
using tessera::f8e5m2;
using tessera::tf32;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// The formats as the OCP specification tabulates them.
template <class Element>
struct Format;
template <>
struct Format<f8e4m3> {
    static constexpr int significand_bits = 3;
    static constexpr int exponent_bias = 7;
    static constexpr unsigned largest = 0x7E;         // S.1111.110 = 448
    static constexpr unsigned no_number_from = 0x7F;  // S.1111.111 is NaN; there is no infinity
    static constexpr auto cuda = __NV_E4M3;
    using Cuda = __nv_fp8_e4m3;
};
template <>
struct Format<f8e5m2> {
    static constexpr int significand_bits = 2;
    static constexpr int exponent_bias = 15;
    static constexpr unsigned largest = 0x7B;         // S.11110.11 = 57344
    static constexpr unsigned no_number_from = 0x7C;  // S.11111.00 is infinity, the rest NaN
    static constexpr auto cuda = __NV_E5M2;
    using Cuda = __nv_fp8_e5m2;
};

constexpr unsigned pattern_count = 0x100;

template <class Element>
Element element(unsigned pattern)
{
    return Element::from_bits(static_cast<std::uint8_t>(pattern));
}

/// The value of a finite pattern, by definition: significand * 2^exponent.
template <class Element>
double value_of(unsigned pattern)
{
    using F = Format<Element>;
    const auto significand = static_cast<int>(pattern & ((1U << F::significand_bits) - 1));
    const auto exponent = static_cast<int>((pattern & 0x7FU) >> F::significand_bits);
    const int hidden = exponent == 0 ? 0 : 1 << F::significand_bits;
    const int scale = (exponent == 0 ? 1 : exponent) - F::exponent_bias - F::significand_bits;
    return ((pattern & 0x80U) != 0 ? -1.0 : 1.0) * std::ldexp(significand + hidden, scale);
}

}  // namespace

TEST_CASE_TEMPLATE("each of the 256 patterns widens to the value that the format defines", Element, f8e4m3, f8e5m2)
{
    using F = Format<Element>;
    for (unsigned pattern = 0; pattern < pattern_count; ++pattern) {
        CAPTURE(pattern);
        const float widened = element<Element>(pattern);
        const unsigned magnitude = pattern & 0x7FU;
        if (magnitude < F::no_number_from) {
            CHECK(widened == value_of<Element>(pattern));
            CHECK(std::signbit(widened) == (pattern >= 0x80U));
        } else if (std::is_same_v<Element, f8e5m2> && magnitude == F::no_number_from) {
            CHECK(widened == (pattern >= 0x80U ? -infinity : infinity));
        } else {
            CHECK(std::bit_cast<std::uint32_t>(widened) == 0x7FFFFFFFU);
        }
    }
}

TEST_CASE_TEMPLATE("every finite 8-bit pattern survives widening and narrowing; all NaN become 0x7F", Element, f8e4m3,
                   f8e5m2)
{
    using F = Format<Element>;
    for (unsigned pattern = 0; pattern < pattern_count; ++pattern) {
        CAPTURE(pattern);
        const float widened = element<Element>(pattern);
        const unsigned expected = (pattern & 0x7FU) <= F::largest ? pattern
                                  : std::isnan(widened)           ? 0x7FU
                                                                  : (pattern & 0x80U) | F::largest;  // infinity
        CHECK(Element(widened).bits == expected);
    }
}

TEST_CASE_TEMPLATE("between any two 8-bit neighbours, narrowing rounds to the nearest and ties to even", Element,
                   f8e4m3, f8e5m2)
{
    for (unsigned pattern = 0; pattern < Format<Element>::largest; ++pattern) {
        CAPTURE(pattern);
        const auto tie = static_cast<float>((value_of<Element>(pattern) + value_of<Element>(pattern + 1)) / 2);
        const float below = std::nextafter(tie, 0.0F);
        const float above = std::nextafter(tie, infinity);
        const unsigned even = pattern % 2 == 0 ? pattern : pattern + 1;
        CHECK(Element(below).bits == pattern);
        CHECK(Element(tie).bits == even);
        CHECK(Element(above).bits == pattern + 1);
        CHECK(Element(-below).bits == (pattern | 0x80U));
        CHECK(Element(-tie).bits == (even | 0x80U));
        CHECK(Element(-above).bits == ((pattern + 1) | 0x80U));
    }
}

TEST_CASE_TEMPLATE("narrowing to 8 bits agrees with CUDA's host conversions, for random floats", Element, f8e4m3,
                   f8e5m2)
{
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    unsigned wrong = 0;
    for (int i = 0; i < 2'000'000; ++i) {
        // Half of the numbers over all of float's range, half over that of the 8-bit formats.
        const auto any = static_cast<std::uint32_t>(random());
        const std::uint32_t near_one = (any & 0x807FFFFFU) | ((105 + (any >> 23) % 45) << 23U);
        const auto value = std::bit_cast<float>(i % 2 == 0 ? any : near_one);
        // CUDA's host code keeps the payload of a NaN, its device code does not.
        const unsigned expected =
            std::isnan(value) ? 0x7FU : __nv_cvt_float_to_fp8(value, __NV_SATFINITE, Format<Element>::cuda);
        wrong += Element(value).bits == expected ? 0U : 1U;
    }
    CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("CUDA's 8-bit types convert from and to the SDK's with the same bits and values", Element, f8e4m3,
                   f8e5m2)
{
    using Cuda = typename Format<Element>::Cuda;
    for (unsigned pattern = 0; pattern < pattern_count; ++pattern) {
        CAPTURE(pattern);
        const auto bits = static_cast<std::uint8_t>(pattern);
        const Element ours = std::bit_cast<Cuda>(bits);
        const auto theirs = static_cast<Cuda>(element<Element>(pattern));
        CHECK(ours.bits == bits);
        CHECK(std::bit_cast<std::uint8_t>(theirs) == bits);
        const auto value = static_cast<float>(theirs);
        CHECK((static_cast<float>(ours) == value || (std::isnan(static_cast<float>(ours)) && std::isnan(value))));
    }
    static_assert(std::is_convertible_v<Cuda, Element> && std::is_constructible_v<Cuda, Element>);
    static_assert(sizeof(Cuda) == sizeof(Element) && alignof(Cuda) == alignof(Element));
}

TEST_CASE("the ends of the 8-bit ranges saturate")
{
    CHECK(f8e4m3(448.0F).bits == 0x7E);
    CHECK(f8e4m3(464.0F).bits == 0x7E);
    CHECK(f8e4m3(480.0F).bits == 0x7E);
    CHECK(f8e4m3(-infinity).bits == 0xFE);
    CHECK(f8e4m3(0x1p-9F).bits == 0x01);
    CHECK(f8e4m3(0x1p-10F).bits == 0x00);
    CHECK(f8e4m3(std::nextafter(0x1p-10F, 1.0F)).bits == 0x01);
    CHECK(f8e4m3(-0.0F).bits == 0x80);
    CHECK(f8e4m3(std::bit_cast<float>(0xFF800001U)).bits == 0x7F);
    CHECK(f8e5m2(57344.0F).bits == 0x7B);
    CHECK(f8e5m2(61440.0F).bits == 0x7B);
    CHECK(f8e5m2(infinity).bits == 0x7B);
    CHECK(f8e5m2(-65536.0F).bits == 0xFB);
    CHECK(f8e5m2(0x1p-16F).bits == 0x01);
    CHECK(f8e5m2(-0x1p-17F).bits == 0x80);
    CHECK(f8e5m2(std::numeric_limits<float>::denorm_min()).bits == 0x00);
    CHECK(f8e5m2(std::bit_cast<float>(0x7F800001U)).bits == 0x7F);
}

TEST_CASE("tf32 rounds to nearest, and ties away from zero, at every exponent")
{
    unsigned wrong = 0;
    for (std::uint32_t kept = 0; kept < 0x7F800000U; kept += 0x2000U) {  // every finite magnitude of tf32
        const auto rounds_to = [&](std::uint32_t low_bits, std::uint32_t expected) {
            wrong += tf32(std::bit_cast<float>(kept + low_bits)).bits == expected ? 0U : 1U;
            wrong += tf32(std::bit_cast<float>(0x80000000U + kept + low_bits)).bits == 0x80000000U + expected ? 0U : 1U;
        };
        rounds_to(0, kept);
        rounds_to(1, kept);
        rounds_to(0xFFF, kept);
        rounds_to(0x1000, kept + 0x2000U);  // the tie
        rounds_to(0x1FFF, kept + 0x2000U);
    }
    CHECK(wrong == 0);
}

TEST_CASE("tf32 rounds correctly at the ends of its range, and any 32 bits have a value")
{
    CHECK(tf32(1.0F).bits == 0x3F800000U);
    CHECK(tf32(1.0F + 0x1p-11F).bits == 0x3F802000U);
    CHECK(tf32(std::numeric_limits<float>::max()).bits == 0x7F800000U);
    CHECK(tf32(-infinity).bits == 0xFF800000U);
    CHECK(tf32(-0.0F).bits == 0x80000000U);
    CHECK(tf32(std::numeric_limits<float>::denorm_min()).bits == 0U);
    CHECK(tf32(std::bit_cast<float>(0x7F800001U)).bits == 0x7FC00000U);
    CHECK(tf32(std::bit_cast<float>(0xFFFFFFFFU)).bits == 0xFFFFE000U);
    CHECK(static_cast<float>(tf32::from_bits(0x3F800001U)) == std::nextafter(1.0F, 2.0F));
}

TEST_CASE("conversions to and from 8 bits and tf32 are constant expressions")
{
    static_assert(f8e4m3(1.0F).bits == 0x38 && f8e5m2(1.0F).bits == 0x3C && tf32(-2.0F).bits == 0xC0000000U);
    static_assert(static_cast<float>(f8e4m3::from_bits(0x01)) == 0x1p-9F);
    static_assert(static_cast<float>(f8e5m2::from_bits(0x7B)) == 57344.0F);
    static_assert(!std::is_convertible_v<float, f8e4m3> && std::is_convertible_v<f8e4m3, float>);
    static_assert(!std::is_convertible_v<float, tf32> && std::is_convertible_v<tf32, float>);
    static_assert(tessera::element_traits<f8e4m3>::unit_roundoff == 0x1p-4F);
    static_assert(tessera::element_traits<f8e5m2>::unit_roundoff == 0x1p-3F);
    static_assert(tessera::element_traits<tf32>::unit_roundoff == 0x1p-11F);
    static_assert(tessera::OutputElement<const f8e4m3> && !tessera::AddendElement<f8e4m3>);
    static_assert(tessera::MatrixElement<tf32> && !tessera::OutputElement<tf32> && tessera::OutputElement<const float>);
}

TEST_CASE("the numbers, sizes and names of the operand types")
{
    using tessera::ElementType;
    static_assert(static_cast<int>(ElementType::tf32) == 3 && static_cast<int>(ElementType::f8e4m3) == 4 &&
                  static_cast<int>(ElementType::f8e5m2) == 5);
    static_assert(size_of(ElementType::tf32) == 4 && size_of(ElementType::f8e4m3) == 1 &&
                  size_of(ElementType::f8e5m2) == 1);
    CHECK(to_string(ElementType::tf32) == "tf32");
    CHECK(to_string(ElementType::f8e4m3) == "f8e4m3");
    CHECK(to_string(ElementType::f8e5m2) == "f8e5m2");
}

TEST_CASE("A and B must have the same type, or 8-bit types")
{
    using tessera::ElementType;
    using tessera::InputTypes;
    constexpr ElementType all[] = {ElementType::f32,  ElementType::f16,    ElementType::bf16,
                                   ElementType::tf32, ElementType::f8e4m3, ElementType::f8e5m2};
    for (const ElementType a : all) {
        for (const ElementType b : all) {
            CHECK(tessera::can_multiply({a, b}) == (a == b || (size_of(a) == 1 && size_of(b) == 1)));
        }
        CHECK(InputTypes(a) == InputTypes(a, a));
    }
}
