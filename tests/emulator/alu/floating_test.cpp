// Floating point that the hardware checksums do not cover: packed f32, mixed precision, three operands, .oob, and
// approximate functions.

#include <cmath>
#include <limits>

#include "one_instruction.hpp"

namespace {

using namespace tessera::emulator;
using namespace tessera::emulator::test;

using H = std::uint16_t;
using U = std::uint32_t;
using L = std::uint64_t;

float canonical(float value) { return std::isnan(value) ? std::bit_cast<float>(0x7FFFFFFFu) : value; }
float flush(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value; }
float low(L pair) { return std::bit_cast<float>(static_cast<U>(pair)); }
float high(L pair) { return std::bit_cast<float>(static_cast<U>(pair >> 32)); }
L pair(float second, float first)
{
    return L{std::bit_cast<U>(canonical(second))} << 32 | std::bit_cast<U>(canonical(first));
}
float from_bf16(H code) { return std::bit_cast<float>(U{code} << 16); }
float from_f16(H code)
{
    const int exponent = code >> 10 & 31;
    const double magnitude = exponent == 31  ? ((code & 1023) != 0 ? NAN : INFINITY)
                             : exponent == 0 ? std::ldexp(code & 1023, -24)
                                             : std::ldexp(1024 + (code & 1023), exponent - 25);
    return static_cast<float>((code & 0x8000) != 0 ? -magnitude : magnitude);
}
float clamp01(float value)
{
    return value > 1 ? 1.0F : value > 0 ? value : 0.0F;  // NaN becomes 0
}
std::vector<std::tuple<L, L, L>> pairs()
{
    std::mt19937_64 random(4);
    std::vector<std::tuple<L, L, L>> all;
    const auto draw = [&random] {
        return L{std::bit_cast<U>(any_operand<float>(random))} << 32 | std::bit_cast<U>(any_operand<float>(random));
    };
    for (int i = 0; i < 1024; ++i) {
        all.emplace_back(draw(), draw(), draw());
    }
    return all;
}

}  // namespace

TEST_CASE("pairs of f32")
{
    check_for<L, L, L, L>("add.rn.f32x2 d, a, b;", pairs(),
                          [](L a, L b, L) { return pair(high(a) + high(b), low(a) + low(b)); });
    check_for<L, L, L, L>("sub.f32x2 d, a, b;", pairs(),
                          [](L a, L b, L) { return pair(high(a) - high(b), low(a) - low(b)); });
    check_for<L, L, L, L>("mul.rn.f32x2 d, a, b;", pairs(),
                          [](L a, L b, L) { return pair(high(a) * high(b), low(a) * low(b)); });
    check_for<L, L, L, L>("fma.rn.f32x2 d, a, b, c;", pairs(), [](L a, L b, L c) {
        return pair(std::fma(high(a), high(b), high(c)), std::fma(low(a), low(b), low(c)));
    });
    check_for<L, L, L, L>("add.rn.ftz.f32x2 d, a, b;", pairs(), [](L a, L b, L) {
        return pair(flush(flush(high(a)) + flush(high(b))), flush(flush(low(a)) + flush(low(b))));
    });
    // The exact sum in double decides the direction.
    check_for<L, L, L, L>("mul.rz.f32x2 d, a, b;", pairs(), [](L a, L b, L) {
        const auto toward_zero = [](float x, float y) {
            const double exact = double{x} * y;
            const float nearest = static_cast<float>(exact);
            return std::fabs(double{nearest}) > std::fabs(exact) ? std::nextafter(nearest, 0.0F) : nearest;
        };
        return pair(toward_zero(high(a), high(b)), toward_zero(low(a), low(b)));
    });
}

TEST_CASE("mixed precision")
{
    check_lanes<float, H, float>("add.f32.bf16 d, a, b;", [](H a, float b) { return canonical(from_bf16(a) + b); });
    check_lanes<float, H, float>("add.rn.f32.f16 d, a, b;", [](H a, float b) { return canonical(from_f16(a) + b); });
    check_lanes<float, H, float>("sub.rn.f32.f16 d, a, b;", [](H a, float b) { return canonical(from_f16(a) - b); });
    check_lanes<float, H, float>("sub.rn.sat.f32.bf16 d, a, b;",
                                 [](H a, float b) { return clamp01(from_bf16(a) - b); });
    check_lanes<float, H, H, float>("fma.rn.f32.bf16 d, a, b, c;", [](H a, H b, float c) {
        return canonical(std::fma(from_bf16(a), from_bf16(b), c));
    });
    check_lanes<float, H, H, float>("fma.rn.sat.f32.f16 d, a, b, c;",
                                    [](H a, H b, float c) { return clamp01(std::fma(from_f16(a), from_f16(b), c)); });
}

TEST_CASE("f32 with .ftz and .sat")
{
    using F = float;
    check_lanes<F, F, F>("add.ftz.f32 d, a, b;", [](F a, F b) { return canonical(flush(flush(a) + flush(b))); });
    check_lanes<F, F, F>("sub.sat.f32 d, a, b;", [](F a, F b) { return clamp01(a - b); });
    check_lanes<F, F, F>("mul.rn.ftz.sat.f32 d, a, b;", [](F a, F b) { return clamp01(flush(flush(a) * flush(b))); });
    check_lanes<F, F, F, F>("fma.rn.ftz.f32 d, a, b, c;",
                            [](F a, F b, F c) { return canonical(flush(std::fma(flush(a), flush(b), flush(c)))); });
    check_lanes<F, F, F, F>("mad.rn.f32 d, a, b, c;", [](F a, F b, F c) { return canonical(std::fma(a, b, c)); });
    check_lanes<F, F, F>("copysign.f32 d, a, b;", [](F a, F b) { return std::copysign(b, a); });
    check_lanes<double, double, double>("copysign.f64 d, a, b;",
                                        [](double a, double b) { return std::copysign(b, a); });
}

TEST_CASE("min and max of two and three values")
{
    using F = float;
    const auto least = [](F a, F b) {
        return std::isnan(a) ? canonical(b) : std::isnan(b) ? a : a < b || (a == b && std::signbit(a)) ? a : b;
    };
    const auto most = [](F a, F b) {
        return std::isnan(a) ? canonical(b) : std::isnan(b) ? a : a > b || (a == b && std::signbit(b)) ? a : b;
    };
    check_lanes<F, F, F>("min.f32 d, a, b;", least);
    check_lanes<F, F, F>("max.f32 d, a, b;", most);
    check_lanes<F, F, F, F>("min.f32 d, a, b, c;", [=](F a, F b, F c) { return least(least(a, b), c); });
    check_lanes<F, F, F, F>("max.f32 d, a, b, c;", [=](F a, F b, F c) { return most(most(a, b), c); });
    check_lanes<F, F, F, F>("max.abs.f32 d, a, b, c;",
                            [=](F a, F b, F c) { return most(most(std::fabs(a), std::fabs(b)), std::fabs(c)); });
    check_lanes<F, F, F, F>("min.NaN.f32 d, a, b, c;", [=](F a, F b, F c) {
        return std::isnan(a) || std::isnan(b) || std::isnan(c) ? canonical(NAN) : least(least(a, b), c);
    });
}

TEST_CASE("fma with .oob treats the fill of tensor copies as zero")
{
    const std::vector<std::tuple<H, H, H>> operands{
        {0x3C00, 0x4000, 0x3C00}, {0x7FFF, 0x4000, 0x3C00}, {0x3C00, 0x7FFF, 0x3C00}, {0x7E00, 0x4000, 0x3C00}};
    CHECK(results_of<H, H, H, H>("fma.rn.oob.f16 d, a, b, c;", operands) == std::vector<H>{0x4200, 0, 0, 0x7FFF});
    CHECK(results_of<H, H, H, H>("fma.rn.f16 d, a, b, c;", operands) == std::vector<H>{0x4200, 0x7FFF, 0x7FFF, 0x7FFF});
}

TEST_CASE("approximate functions stay within the errors that PTX states")
{
    std::mt19937_64 random(31);
    std::vector<std::tuple<float, float>> operands;
    for (int i = 0; i < 1024; ++i) {
        operands.emplace_back(
            std::ldexp(1.0F + static_cast<float>(random() % 8192) / 8192, static_cast<int>(random() % 20) - 10),
            std::ldexp(1.0F + static_cast<float>(random() % 8192) / 8192, static_cast<int>(random() % 20) - 10));
    }
    const auto check = [&](const std::string& text, auto exact, double relative, double absolute) {
        const std::vector<float> values = results_of<float, float, float>(text, operands);
        double worst = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double want = std::apply(exact, operands[i]);
            worst = std::max(worst, std::fabs(double{values[i]} - want) / (relative * std::fabs(want) + absolute));
        }
        INFO(text << ": worst error in units of the bound " << worst);
        CHECK(worst <= 1.0);
    };
    check("rcp.approx.f32 d, a;", [](double a, double) { return 1 / a; }, 0x1p-23, 0);
    check("rcp.approx.ftz.f32 d, a;", [](double a, double) { return 1 / a; }, 0x1p-23, 0);
    check("sqrt.approx.f32 d, a;", [](double a, double) { return std::sqrt(a); }, 0x1p-23, 0);
    check("rsqrt.approx.f32 d, a;", [](double a, double) { return 1 / std::sqrt(a); }, 0x1p-22, 0);
    check("div.approx.f32 d, a, b;", [](double a, double b) { return a / b; }, 0x1p-22, 0);
    check("div.full.f32 d, a, b;", [](double a, double b) { return a / b; }, 0x1p-22, 0);
    check("lg2.approx.f32 d, a;", [](double a, double) { return std::log2(a); }, 0x1p-22, 0x1p-22);
    check("tanh.approx.f32 d, a;", [](double a, double) { return std::tanh(a); }, 0x1p-11, 0);
    for (auto& [a, b] : operands) {
        a = std::fmod(a, 3.0F);  // where PTX states the bounds
    }
    check("sin.approx.f32 d, a;", [](double a, double) { return std::sin(a); }, 0, 0x1p-20);
    check("cos.approx.ftz.f32 d, a;", [](double a, double) { return std::cos(a); }, 0, 0x1p-20);
    check("ex2.approx.ftz.f32 d, a;", [](double a, double) { return std::exp2(a); }, 0x1p-22, 0);
}
