// cvt between integers, in wider registers, of packed and narrow formats, and cvt.pack. hardware_test.cpp compares
// roundings between floating-point types and integers with hardware.

#include <algorithm>
#include <cmath>
#include <limits>

#include "one_instruction.hpp"

namespace {

using namespace tessera::emulator;
using namespace tessera::emulator::test;

using B = std::uint8_t;
using H = std::uint16_t;
using U = std::uint32_t;
using S = std::int32_t;
using L = std::uint64_t;

__extension__ using Wide = __int128;

template <typename T>
std::string name_of()
{
    return (std::is_signed_v<T> ? "s" : "u") + std::to_string(8 * sizeof(T));
}

template <typename D, typename A>
void check_pair()
{
    const std::string types = name_of<D>() + "." + name_of<A>() + " d, a;";
    // In registers of their own sizes and in 64-bit registers: the destination's signedness extends the result.
    check_lanes<D, A>("cvt." + types, [](A a) { return static_cast<D>(a); });
    check_lanes<L, L>("cvt." + types, [](L a) { return static_cast<L>(static_cast<D>(static_cast<A>(a))); });
    const bool can_saturate = Wide{std::numeric_limits<A>::max()} > Wide{std::numeric_limits<D>::max()} ||
                              Wide{std::numeric_limits<A>::min()} < Wide{std::numeric_limits<D>::min()};
    if (can_saturate) {
        check_lanes<D, A>("cvt.sat." + types, [](A a) {
            return static_cast<D>(
                std::clamp(Wide{a}, Wide{std::numeric_limits<D>::min()}, Wide{std::numeric_limits<D>::max()}));
        });
    }
}

template <typename D>
void check_to()
{
    check_pair<D, std::uint8_t>();
    check_pair<D, std::int8_t>();
    check_pair<D, std::uint16_t>();
    check_pair<D, std::int16_t>();
    check_pair<D, std::uint32_t>();
    check_pair<D, std::int32_t>();
    check_pair<D, std::uint64_t>();
    check_pair<D, std::int64_t>();
}

/// Value of a code of a small format, from its fields. The top code of e4m3 is NaN; e5m2 has infinities.
double small_value(U code, int exponent_bits, int mantissa_bits, int bias)
{
    const U mantissa = code & ((1u << mantissa_bits) - 1);
    const int exponent = static_cast<int>(code >> mantissa_bits & ((1u << exponent_bits) - 1));
    const double magnitude = exponent == 0
                                 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                 : std::ldexp((1u << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
    return (code >> (exponent_bits + mantissa_bits) & 1) != 0 ? -magnitude : magnitude;
}

struct Small {
    const char* name;
    int exponent_bits, mantissa_bits, bias;
    U largest;  ///< code of the largest finite value
    U nan;
};

constexpr Small e4m3{"e4m3x2", 4, 3, 7, 0x7E, 0x7F};
constexpr Small e5m2{"e5m2x2", 5, 2, 15, 0x7B, 0x7F};
constexpr Small e2m3{"e2m3x2", 2, 3, 1, 0x1F, 0x1F};
constexpr Small e3m2{"e3m2x2", 3, 2, 3, 0x1F, 0x1F};
constexpr Small e2m1{"e2m1x2", 2, 1, 1, 0x7, 0x7};

/// The nearest code, ties to even, by trying all codes. Saturates.
U nearest(const Small& format, double value, bool relu)
{
    if (std::isnan(value)) {
        return format.nan;
    }
    const U sign = std::signbit(value) ? 1u << (format.exponent_bits + format.mantissa_bits) : 0u;
    if (relu && sign != 0) {
        return 0;
    }
    const double largest = small_value(format.largest, format.exponent_bits, format.mantissa_bits, format.bias);
    const double magnitude = std::min(std::fabs(value), largest);  // larger values saturate
    U best = 0;
    double distance = INFINITY;
    for (U code = 0; code <= format.largest; ++code) {
        const double off =
            std::fabs(small_value(code, format.exponent_bits, format.mantissa_bits, format.bias) - magnitude);
        if (off < distance || (off == distance && code % 2 == 0)) {
            best = code;
            distance = off;
        }
    }
    return best | sign;
}

std::vector<std::tuple<float, float>> interesting_floats()
{
    std::vector<std::tuple<float, float>> values;
    std::mt19937_64 random(9);
    for (int i = 0; i < 2048; ++i) {
        // Around the range of the small formats, with ties.
        const auto draw = [&random] {
            const float number = std::ldexp(static_cast<float>(random() % 64), static_cast<int>(random() % 24) - 16);
            return random() % 2 == 0 ? number : -number;
        };
        values.emplace_back(random() % 4 == 0 ? any_operand<float>(random) : draw(), draw());
    }
    return values;
}

}  // namespace

TEST_CASE("integers to integers")
{
    check_to<std::uint8_t>();
    check_to<std::int8_t>();
    check_to<std::uint16_t>();
    check_to<std::int16_t>();
    check_to<std::uint32_t>();
    check_to<std::int32_t>();
    check_to<std::uint64_t>();
    check_to<std::int64_t>();
}

TEST_CASE("8-bit integers and floating point")
{
    check_lanes<float, B>("cvt.rn.f32.u8 d, a;", [](B a) { return static_cast<float>(a); });
    check_lanes<double, U>("cvt.rn.f64.s8 d, a;", [](U a) { return static_cast<double>(static_cast<std::int8_t>(a)); });
    check_lanes<float, U>("cvt.rz.sat.f32.s32 d, a;", [](U a) { return static_cast<S>(a) <= 0 ? 0.0F : 1.0F; });
    check_lanes<H, U>("cvt.rn.sat.f16.u32 d, a;", [](U a) { return a == 0 ? H{0} : H{0x3C00}; });
    check_lanes<U, float>("cvt.rni.u8.f32 d, a;", [](float a) {
        return std::isnan(a) ? 0u : static_cast<U>(std::clamp(std::nearbyint(double{a}), 0.0, 255.0));
    });
    check_lanes<L, float>("cvt.rzi.s8.f32 d, a;", [](float a) {
        return std::isnan(a)
                   ? L{0}
                   : static_cast<L>(static_cast<std::int64_t>(std::clamp(std::trunc(double{a}), -128.0, 127.0)));
    });
}

TEST_CASE("two values to 8, 6 and 4 bits")
{
    for (const Small& format : {e4m3, e5m2, e2m3, e3m2, e2m1}) {
        for (const bool relu : {false, true}) {
            const std::string text =
                std::string("cvt.rn.satfinite.") + (relu ? "relu." : "") + format.name + ".f32 d, a, b;";
            const auto expected = [=](float a, float b) {
                const unsigned cell = format.largest == 7 ? 4 : 8;
                return nearest(format, double{a}, relu) << cell | nearest(format, double{b}, relu);
            };
            if (format.largest == 7) {
                check_for<B, float, float>(text, interesting_floats(),
                                           [=](float a, float b) { return static_cast<B>(expected(a, b)); });
            } else {
                check_for<H, float, float>(text, interesting_floats(),
                                           [=](float a, float b) { return static_cast<H>(expected(a, b)); });
            }
        }
    }
}

TEST_CASE("8, 6 and 4 bits to f16")
{
    const auto half = [](double value) {  // f16 has every value of these formats
        U best = 0;
        while (small_value(best, 5, 10, 15) != std::fabs(value)) {
            ++best;
        }
        return best | (std::signbit(value) ? 0x8000u : 0u);
    };
    for (const Small& format : {e4m3, e2m3, e3m2}) {
        const int width = 1 + format.exponent_bits + format.mantissa_bits;
        std::vector<std::tuple<H>> codes;
        for (U code = 0; code < 1u << width; ++code) {
            if ((code & ((1u << (width - 1)) - 1)) <= format.largest) {
                codes.emplace_back(static_cast<H>(code << 8 | (code ^ 1u << (width - 1))));
            }
        }
        check_for<U, H>(std::string("cvt.rn.f16x2.") + format.name + " d, a;", codes, [&](H a) {
            return half(small_value(a >> 8, format.exponent_bits, format.mantissa_bits, format.bias)) << 16 |
                   half(small_value(a & 255u, format.exponent_bits, format.mantissa_bits, format.bias));
        });
    }
    std::vector<std::tuple<B>> pairs;
    for (U code = 0; code < 256; ++code) {
        pairs.emplace_back(static_cast<B>(code));
    }
    check_for<U, B>("cvt.rn.f16x2.e2m1x2 d, a;", pairs, [&](B a) {
        return half(small_value(a >> 4, 2, 1, 1)) << 16 | half(small_value(a & 15u, 2, 1, 1));
    });
    check_for<U, B>("cvt.rn.relu.f16x2.e2m1x2 d, a;", pairs, [&](B a) {
        const auto positive = [&](U code) { return code >= 8 ? 0u : half(small_value(code, 2, 1, 1)); };
        return positive(a >> 4) << 16 | positive(a & 15u);
    });
}

TEST_CASE("powers of two")
{
    const auto exponent = [](float value, bool up, bool satfinite) -> U {
        if (std::isnan(value)) {
            return 0xFF;
        }
        const double magnitude = std::fabs(double{value});
        if (std::isinf(value)) {
            return satfinite ? 0xFE : 0xFF;
        }
        int code = 0;
        while (code < 255 && std::ldexp(1.0, code - 127) < magnitude) {
            ++code;
        }
        if (!up && code > 0 && std::ldexp(1.0, code - 127) > magnitude) {
            --code;
        }
        return satfinite ? std::min<U>(static_cast<U>(code), 0xFE) : static_cast<U>(code);
    };
    for (const bool up : {false, true}) {
        for (const bool satfinite : {false, true}) {
            const std::string text =
                std::string("cvt.") + (up ? "rp" : "rz") + (satfinite ? ".satfinite" : "") + ".ue8m0x2.f32 d, a, b;";
            check_lanes<H, float, float>(text, [=](float a, float b) {
                return static_cast<H>(exponent(a, up, satfinite) << 8 | exponent(b, up, satfinite));
            });
        }
    }
    std::vector<std::tuple<H>> codes;
    for (U code = 0; code < 255; ++code) {
        codes.emplace_back(static_cast<H>(code << 8 | (254 - code)));
    }
    check_for<U, H>("cvt.rn.bf16x2.ue8m0x2 d, a;", codes, [](H a) {
        const auto bits = [](U code) {
            return std::bit_cast<U>(static_cast<float>(std::ldexp(1.0, static_cast<int>(code) - 127))) >> 16;
        };
        return bits(a >> 8) << 16 | bits(a & 255u);
    });
}

TEST_CASE("stochastic rounding adds the random bits and cuts")
{
    // Positive normal numbers below the largest of the target: truncate after adding below the last place.
    std::vector<std::tuple<float, float, U>> operands;
    std::mt19937_64 random(21);
    for (int i = 0; i < 512; ++i) {
        const auto draw = [&random] {
            return std::ldexp(1.0F + static_cast<float>(random() % (1u << 23)) / (1u << 23),
                              static_cast<int>(random() % 8) - 4);
        };
        operands.emplace_back(draw(), draw(), static_cast<U>(random()));
    }
    check_for<U, float, float, U>("cvt.rs.bf16x2.f32 d, a, b, c;", operands, [](float a, float b, U c) {
        return ((std::bit_cast<U>(a) + (c >> 16)) & 0xFFFF0000u) | (std::bit_cast<U>(b) + (c & 0xFFFF)) >> 16;
    });
    check_for<U, float, float, U>("cvt.rs.f16x2.f32 d, a, b, c;", operands, [](float a, float b, U c) {
        const auto cut = [](float x, U bits) { return (std::bit_cast<U>(x) - 0x38000000u + (bits & 0x1FFF)) >> 13; };
        return cut(a, c >> 16) << 16 | cut(b, c);
    });
}

TEST_CASE("cvt.pack")
{
    const auto clamp = [](S value, unsigned bits, bool is_signed) {
        const S low = is_signed ? -(S{1} << (bits - 1)) : 0;
        const S high = is_signed ? (S{1} << (bits - 1)) - 1 : (S{1} << bits) - 1;
        return static_cast<U>(std::clamp(value, low, high)) & ((1u << bits) - 1);
    };
    for (const bool is_signed : {false, true}) {
        const std::string sign = is_signed ? "s" : "u";
        check_lanes<U, S, S>("cvt.pack.sat." + sign + "16.s32 d, a, b;",
                             [=](S a, S b) { return clamp(a, 16, is_signed) << 16 | clamp(b, 16, is_signed); });
        for (const unsigned bits : {2u, 4u, 8u}) {
            check_lanes<U, S, S, U>(
                "cvt.pack.sat." + sign + std::to_string(bits) + ".s32.b32 d, a, b, c;", [=](S a, S b, U c) {
                    return c << (2 * bits) | clamp(a, bits, is_signed) << bits | clamp(b, bits, is_signed);
                });
        }
    }
}
