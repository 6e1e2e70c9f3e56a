// Conversions against their definitions, computed differently: values from powers of two in long double, rounding by
// searching the neighbours in the sorted list of all values of a format.

#include "numerics/formats.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "../hardware/probe_inputs.hpp"

namespace {

using namespace tessera::emulator::numerics;

struct Described {
    Format format;
    const Layout* layout;
    int sign_bits, exponent_bits, mantissa_bits, bias;
    bool has_infinity;
    int nan_codes_at_top;  ///< how many of the largest magnitudes are NaN
};

const Described described[] = {
    {Format::f16, &f16_layout, 1, 5, 10, 15, true, 1023}, {Format::bf16, &bf16_layout, 1, 8, 7, 127, true, 127},
    {Format::e4m3, &e4m3_layout, 1, 4, 3, 7, false, 1},   {Format::e5m2, &e5m2_layout, 1, 5, 2, 15, true, 3},
    {Format::e2m3, &e2m3_layout, 1, 2, 3, 1, false, 0},   {Format::e3m2, &e3m2_layout, 1, 3, 2, 3, false, 0},
    {Format::e2m1, &e2m1_layout, 1, 2, 1, 1, false, 0},
};

std::uint32_t magnitudes(const Described& f) { return 1U << (f.exponent_bits + f.mantissa_bits); }

bool is_nan_code(const Described& f, std::uint32_t magnitude)
{
    return magnitude >= magnitudes(f) - static_cast<std::uint32_t>(f.nan_codes_at_top);
}
bool is_infinity_code(const Described& f, std::uint32_t magnitude)
{
    return f.has_infinity && magnitude == magnitudes(f) - static_cast<std::uint32_t>(f.nan_codes_at_top) - 1;
}

long double defined_value(const Described& f, std::uint32_t magnitude)
{
    const std::uint32_t field = magnitude >> f.mantissa_bits;
    const std::uint32_t mantissa = magnitude - (field << f.mantissa_bits);
    const long double fraction = static_cast<long double>(mantissa) / static_cast<long double>(1U << f.mantissa_bits);
    return field == 0 ? std::ldexp(fraction, 1 - f.bias)
                      : std::ldexp(1.0L + fraction, static_cast<int>(field) - f.bias);
}

/// All finite magnitudes in order; the code is the index.
std::vector<double> finite_values(const Described& f)
{
    std::vector<double> values;
    for (std::uint32_t code = 0; code < magnitudes(f) && !is_nan_code(f, code) && !is_infinity_code(f, code); ++code) {
        values.push_back(static_cast<double>(defined_value(f, code)));
    }
    return values;
}

/// The code of a finite value by the definition of the rounding mode.
std::uint32_t slow_encode(const Described& f, const std::vector<double>& values, double value, Rounding mode,
                          bool satfinite)
{
    const bool negative = std::signbit(value);
    const double magnitude = std::fabs(value);
    const std::uint32_t sign = negative ? magnitudes(f) : 0U;
    const auto last = static_cast<std::uint32_t>(values.size() - 1);
    const auto above =
        static_cast<std::uint32_t>(std::lower_bound(values.begin(), values.end(), magnitude) - values.begin());
    if (above <= last && values[above] == magnitude) {
        return sign | above;
    }
    const bool away_mode = (mode == Rounding::up && !negative) || (mode == Rounding::down && negative);
    const bool nearest = mode == Rounding::nearest_even || mode == Rounding::nearest_away;
    // After the last value, the next one would be one step further.
    const double low = values[above - 1];
    const double high = above <= last ? values[above] : low + (low - values[last - 1]);
    bool up = away_mode;
    if (nearest) {
        const double middle = low + (high - low) / 2;
        up = magnitude > middle || (magnitude == middle && (mode == Rounding::nearest_away || (above & 1U) == 0));
        up = up || magnitude >= high;
    }
    if (!up) {
        return sign | (above - 1);
    }
    if (above <= last) {
        return sign | above;
    }
    const std::uint32_t beyond = f.has_infinity || f.nan_codes_at_top > 0 ? last + 1 : last;
    return sign | (satfinite ? last : beyond);
}

constexpr Rounding all_modes[] = {Rounding::nearest_even, Rounding::toward_zero, Rounding::down, Rounding::up,
                                  Rounding::nearest_away};

}  // namespace

TEST_CASE("every code of every format decodes to its definition")
{
    for (const Described& f : described) {
        INFO(std::string(format_name(f.format)));
        CHECK(element_bits(f.format) == f.sign_bits + f.exponent_bits + f.mantissa_bits);
        int wrong = 0;
        for (std::uint32_t code = 0; code < 2 * magnitudes(f); ++code) {
            const std::uint32_t magnitude = code % magnitudes(f);
            const bool negative = code >= magnitudes(f);
            const float got = decode(f.format, code);
            bool right = false;
            if (is_nan_code(f, magnitude)) {
                right = got != got;
            } else if (is_infinity_code(f, magnitude)) {
                right = std::isinf(got) && std::signbit(got) == negative;
            } else {
                const long double value = defined_value(f, magnitude);
                right = static_cast<long double>(got) == (negative ? -value : value) && std::signbit(got) == negative;
            }
            right = right && (is_nan_code(f, magnitude) || decode(*f.layout, code) == got);
            wrong += right ? 0 : 1;
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("ue8m0, ue4m3 and tf32 decode to their definition")
{
    for (int code = 0; code < 255; ++code) {
        CHECK(float_from_ue8m0(static_cast<std::uint8_t>(code)) == std::ldexp(1.0F, code - 127));
        CHECK(decode(Format::ue8m0, static_cast<std::uint32_t>(code)) == std::ldexp(1.0F, code - 127));
    }
    CHECK(std::isnan(float_from_ue8m0(0xFF)));
    for (int code = 0; code < 256; ++code) {
        const float plain = float_from_e4m3(static_cast<std::uint8_t>(code & 0x7F));
        const float scale = float_from_ue4m3(static_cast<std::uint8_t>(code));
        CHECK(std::bit_cast<std::uint32_t>(plain) == std::bit_cast<std::uint32_t>(scale));
    }
    tessera::probe::Generator random(1);
    for (int i = 0; i < 100000; ++i) {
        const auto word = static_cast<std::uint32_t>(random.next());
        const auto cut = std::bit_cast<float>(word & 0xFFFF'E000U);
        const float got = float_from_tf32(word);
        CHECK((got == cut || (got != got && cut != cut)));
    }
}

TEST_CASE("whole tiles convert like single elements")
{
    std::vector<std::uint16_t> codes(65536);
    for (std::size_t i = 0; i < codes.size(); ++i) {
        codes[i] = static_cast<std::uint16_t>(i);
    }
    std::vector<float> f16(codes.size());
    std::vector<float> bf16(codes.size());
    float_from_f16(codes.data(), f16.data(), codes.size());
    float_from_bf16(codes.data(), bf16.data(), codes.size());
    int wrong = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) {
        wrong += std::bit_cast<std::uint32_t>(f16[i]) != std::bit_cast<std::uint32_t>(float_from_f16(codes[i]));
        wrong += std::bit_cast<std::uint32_t>(bf16[i]) != std::bit_cast<std::uint32_t>(float_from_bf16(codes[i]));
    }
    CHECK(wrong == 0);
    std::vector<std::uint8_t> bytes(256);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(i);
    }
    std::vector<float> values(256);
    float_from_bytes(Format::e5m2, bytes.data(), values.data(), bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        CHECK(std::bit_cast<std::uint32_t>(values[i]) == std::bit_cast<std::uint32_t>(float_from_e5m2(bytes[i])));
    }
    const std::vector<std::uint32_t> words = {0x3F80'1FFF, 0x7F80'0001, 0xFFC0'0000, 0x8000'0001};
    float_from_tf32(words.data(), values.data(), words.size());
    CHECK(values[0] == 1.0F);
    CHECK(values[1] == HUGE_VALF);
    CHECK(values[2] != values[2]);
    CHECK(std::bit_cast<std::uint32_t>(values[3]) == 0x8000'0000U);
}

TEST_CASE("every code survives a round trip")
{
    for (const Described& f : described) {
        int wrong = 0;
        for (std::uint32_t code = 0; code < 2 * magnitudes(f); ++code) {
            const std::uint32_t back = encode(f.format, double{decode(f.format, code)});
            const bool nan = is_nan_code(f, code % magnitudes(f));
            wrong += back == (nan ? magnitudes(f) - 1 : code) ? 0 : 1;
        }
        INFO(std::string(format_name(f.format)));
        CHECK(wrong == 0);
    }
}

TEST_CASE("values between two codes round by the definition of each mode")
{
    for (const Described& f : described) {
        const std::vector<double> values = finite_values(f);
        INFO(std::string(format_name(f.format)));
        int wrong = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double low = values[i];
            const double step = i + 1 < values.size() ? values[i + 1] - low : low - values[i - 1];
            const double middle = low + step / 2;
            const double tries[] = {low,           low + step / 1024,  std::nextafter(middle, 0.0),
                                    middle,        middle + step / 64, std::nextafter(low + step, 0.0),
                                    low + step * 3};
            for (const double magnitude : tries) {
                for (const Rounding mode : all_modes) {
                    for (const bool satfinite : {false, true}) {
                        for (const double value : {magnitude, -magnitude}) {
                            const std::uint32_t expected = slow_encode(f, values, value, mode, satfinite);
                            wrong += encode(f.format, value, {mode, satfinite, false, false}) == expected ? 0 : 1;
                        }
                    }
                }
            }
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("the fast conversions to f16 and bf16 equal the general ones")
{
    tessera::probe::Generator random(2);
    int wrong = 0;
    const auto compare = [&wrong](std::uint32_t bits) {
        const auto value = std::bit_cast<float>(bits);
        wrong += f16_from_float(value) != encode(f16_layout, double{value});
        wrong += bf16_from_float(value) != encode(bf16_layout, double{value});
    };
    for (int i = 0; i < 1'000'000; ++i) {
        compare(static_cast<std::uint32_t>(random.next()));
    }
    for (std::uint32_t code = 0; code < 65536; ++code) {
        for (const std::uint32_t low : {0U, 1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
            compare(code << 16 | low);  // bf16 ties
        }
        const auto value = std::bit_cast<std::uint32_t>(float_from_f16(static_cast<std::uint16_t>(code)));
        for (const std::uint32_t low : {1U, 0xFFFU, 0x1000U, 0x1001U, 0x1FFFU}) {
            compare(value + low);  // f16 ties
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("modifiers and special values of cvt")
{
    const float infinity = HUGE_VALF;
    const auto nan = std::bit_cast<float>(0xFFC1'2345U);
    CHECK(f16_from_float(nan) == 0x7FFF);
    CHECK(bf16_from_float(nan) == 0x7FFF);
    CHECK(tf32_from_float(nan, {}) == 0x7FFF'E000);
    CHECK(e4m3_from_float(nan) == 0x7F);
    CHECK(e5m2_from_float(nan) == 0x7F);
    CHECK(e2m3_from_float(nan) == 0x1F);
    CHECK(e3m2_from_float(nan) == 0x1F);
    CHECK(e2m1_from_float(nan) == 0x7);
    CHECK(e4m3_from_float(infinity) == 0x7E);
    CHECK(e4m3_from_float(-1e9F) == 0xFE);
    CHECK(e5m2_from_float(-infinity) == 0xFB);
    CHECK(e2m1_from_float(-infinity) == 0xF);
    CHECK(e2m1_from_float(2.5F) == 4);    // tie to even: 2
    CHECK(e2m1_from_float(3.5F) == 6);    // tie to even: 4
    CHECK(e2m1_from_float(-0.25F) == 8);  // tie to even: -0
    CHECK(f16_from_float(infinity, {.satfinite = true}) == 0x7BFF);
    CHECK(f16_from_float(65520.0F) == 0x7C00);
    CHECK(f16_from_float(65519.0F) == 0x7BFF);
    CHECK(f16_from_float(-3.0F, {.relu = true}) == 0);
    CHECK(f16_from_float(-0.0F, {.relu = true}) == 0);
    CHECK(f16_from_float(nan, {.relu = true}) == 0x7FFF);
    CHECK(f16_from_float(nan, {.sat = true}) == 0);
    CHECK(f16_from_float(7.0F, {.sat = true}) == 0x3C00);
    CHECK(tf32_from_float(std::bit_cast<float>(0x3F80'1000U), {.rounding = Rounding::nearest_away}) == 0x3F80'2000);
    CHECK(tf32_from_float(std::bit_cast<float>(0x3F80'1000U), {}) == 0x3F80'0000);
    CHECK(encode_f64(f16_layout, std::bit_cast<double>(0xFFF0'0000'0000'0001U)) == 0xFE00);
}

TEST_CASE("ue8m0 is the exponent of the magnitude")
{
    for (int code = 0; code < 255; ++code) {
        const float power = std::ldexp(1.0F, code - 127);
        CHECK(ue8m0_from_float(power, Rounding::toward_zero, true) == code);
        CHECK(ue8m0_from_float(-power, Rounding::up, true) == code);
        const float more = std::nextafter(power, HUGE_VALF);
        CHECK(ue8m0_from_float(more, Rounding::toward_zero, true) == code);
        CHECK(ue8m0_from_float(more, Rounding::up, true) == std::min(code + 1, 254));
        CHECK(ue8m0_from_float(more, Rounding::up, false) == code + 1);
    }
    CHECK(ue8m0_from_float(0.0F, Rounding::up, true) == 0);
    CHECK(ue8m0_from_float(0x1p-140F, Rounding::up, true) == 0);
    CHECK(ue8m0_from_float(HUGE_VALF, Rounding::toward_zero, true) == 0xFE);
    CHECK(ue8m0_from_float(HUGE_VALF, Rounding::toward_zero, false) == 0xFF);
    CHECK(ue8m0_from_float(std::nanf(""), Rounding::up, true) == 0xFF);
}

TEST_CASE("stochastic rounding rounds up as often as the fraction requires")
{
    tessera::probe::Generator random(3);
    for (int i = 0; i < 50; ++i) {
        const auto bits =
            static_cast<std::uint32_t>(tessera::probe::detail::number(random, tessera::probe::bits_f32, 0, 12));
        const auto value = std::bit_cast<float>(bits);
        const std::uint32_t low = encode(Format::f16, double{value}, {.rounding = Rounding::toward_zero});
        const std::uint32_t fraction = bits & 0x1FFFU;  // exact for f16's normal numbers
        std::uint32_t ups = 0;
        for (std::uint32_t draw = 0; draw < 8192; ++draw) {
            const std::uint32_t code = encode_stochastic(Format::f16, value, draw, 13, false, false);
            CHECK((code == low || code == low + 1));
            ups += code - low;
        }
        CHECK(ups == fraction);
    }
    CHECK(encode_stochastic(Format::e4m3, 1e9F, 0, 16, true, false) == 0x7E);
    CHECK(encode_stochastic(Format::e4m3, -2.0F, 0, 16, true, true) == 0);
}

TEST_CASE("floating point to integer clamps, and NaN depends on the widths")
{
    const double nan = std::nan("");
    CHECK(integer_from_double<std::int32_t>(nan, Rounding::toward_zero, false) == 0);
    CHECK(integer_from_double<std::int32_t>(nan, Rounding::toward_zero, true) ==
          std::numeric_limits<std::int32_t>::min());
    CHECK(integer_from_double<std::uint32_t>(nan, Rounding::toward_zero, true) == 0x8000'0000U);
    CHECK(integer_from_double<std::int64_t>(nan, Rounding::toward_zero, false) ==
          std::numeric_limits<std::int64_t>::min());
    CHECK(integer_from_double<std::uint64_t>(nan, Rounding::toward_zero, false) == std::uint64_t{1} << 63);
    CHECK(integer_from_double<std::int8_t>(nan, Rounding::toward_zero, false) == 0);
    CHECK(integer_from_double<std::int32_t>(2147483647.4, Rounding::up, true) == 2147483647);
    CHECK(integer_from_double<std::int32_t>(-2147483648.9, Rounding::toward_zero, true) == -2147483647 - 1);
    CHECK(integer_from_double<std::int64_t>(9.3e18, Rounding::toward_zero, true) ==
          std::numeric_limits<std::int64_t>::max());
    CHECK(integer_from_double<std::uint64_t>(0x1p64, Rounding::toward_zero, true) == ~std::uint64_t{0});
    CHECK(integer_from_double<std::uint64_t>(-0.5, Rounding::down, true) == 0);
    CHECK(integer_from_double<std::uint8_t>(255.5, Rounding::nearest_even, false) == 255);
    CHECK(integer_from_double<std::int32_t>(2.5, Rounding::nearest_even, false) == 2);
    CHECK(integer_from_double<std::int32_t>(3.5, Rounding::nearest_even, false) == 4);
    CHECK(integer_from_double<std::int32_t>(-2.5, Rounding::down, false) == -3);
    CHECK(integer_from_double<std::int32_t>(-2.5, Rounding::up, false) == -2);
}

TEST_CASE("integer to floating point rounds once")
{
    CHECK(encode_integer(f32_layout, std::uint64_t{(1U << 24) + 1}, Rounding::nearest_even) == 0x4B80'0000);
    CHECK(encode_integer(f32_layout, std::uint64_t{(1U << 24) + 3}, Rounding::nearest_even) == 0x4B80'0002);
    CHECK(encode_integer(f32_layout, std::uint64_t{(1U << 24) + 1}, Rounding::up) == 0x4B80'0001);
    CHECK(encode_integer(f32_layout, -std::int64_t{(1U << 24) + 1}, Rounding::up) == 0xCB80'0000);
    CHECK(encode_integer(f32_layout, std::numeric_limits<std::int64_t>::min(), Rounding::nearest_even) == 0xDF00'0000);
    CHECK(encode_integer(f16_layout, std::uint64_t{65520}, Rounding::nearest_even) == 0x7C00);
    CHECK(encode_integer(f16_layout, std::uint64_t{70000}, Rounding::toward_zero) == 0x7BFF);
    CHECK(encode_integer(f64_layout, ~std::uint64_t{0}, Rounding::nearest_even) == 0x43F0'0000'0000'0000);
    CHECK(encode_integer(f64_layout, ~std::uint64_t{0}, Rounding::toward_zero) == 0x43EF'FFFF'FFFF'FFFF);
    CHECK(encode_integer(f32_layout, std::uint64_t{0}, Rounding::down) == 0);
}
