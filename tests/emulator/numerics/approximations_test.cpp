// The approximate instructions: within the errors of the PTX ISA, and with its special cases.

#include "numerics/approximations.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>

#include "../hardware/probe_inputs.hpp"
#include "numerics/formats.hpp"

namespace {

using namespace tessera::emulator::numerics;
using tessera::probe::Generator;

float number(Generator& random, int spread)
{
    return std::bit_cast<float>(
        static_cast<std::uint32_t>(tessera::probe::detail::number(random, tessera::probe::bits_f32, 0, spread)));
}

long double relative(float got, long double exact) { return std::fabs((got - exact) / exact); }

bool is_nan(float value) { return std::bit_cast<std::uint32_t>(value) == canonical_nan_f32; }

}  // namespace

TEST_CASE("f32 approximations are within the documented errors")
{
    Generator random(21);
    for (int i = 0; i < 50000; ++i) {
        const float a = number(random, 100);
        const float b = number(random, 20);
        const float positive = std::fabs(a);
        const auto x = static_cast<long double>(a);
        const auto root = std::sqrt(static_cast<long double>(positive));
        CHECK(relative(rcp_approx(a, false), 1 / x) <= 0x1p-23L);
        CHECK(relative(sqrt_approx(positive, false), root) <= 0x1p-23L);
        CHECK(relative(rsqrt_approx(positive, false), 1 / root) <= std::exp2(-22.9L));
        CHECK(relative(div_approx(a, b, false), x / b) <= 0x1p-22L);
        CHECK(relative(div_full(b, a, false), b / x) <= 0x1p-22L);
        const float angle = std::fmod(a, 3.14159274F);
        CHECK(std::fabs(sin_approx(angle, false) - std::sin(static_cast<long double>(angle))) <= std::exp2(-20.5L));
        CHECK(std::fabs(cos_approx(angle, false) - std::cos(static_cast<long double>(angle))) <= std::exp2(-20.5L));
        const float power = std::fmod(b, 100.0F);
        CHECK(relative(ex2_approx(power, false), std::exp2(static_cast<long double>(power))) <= 0x1p-22L);
        const long double logarithm = std::log2(static_cast<long double>(positive));
        CHECK(std::fabs(lg2_approx(positive, false) - logarithm) <= 0x1p-22L * std::max(1.0L, std::fabs(logarithm)));
        CHECK(relative(tanh_approx(b), std::tanh(static_cast<long double>(b))) <= 0x1p-11L);
    }
}

TEST_CASE("16-bit and f64 approximations are within the documented errors")
{
    for (std::uint32_t code = 0; code < 65536; ++code) {
        const auto half = static_cast<std::uint16_t>(code);
        const long double x = float_from_f16(half);
        if (std::isfinite(x)) {
            const long double power = std::exp2(x);
            const float got = float_from_f16(ex2_approx_f16(half, false));
            CHECK((power > 65000 || power < 0x1p-14L || relative(got, power) <= std::exp2(-9.9L)));
            const float tangent = float_from_f16(tanh_approx_f16(half));
            CHECK(std::fabs(tangent - std::tanh(x)) <= std::exp2(-10.987L));
        }
        const long double y = float_from_bf16(half);
        if (std::isfinite(y)) {
            const long double power = std::exp2(y);
            const float got = float_from_bf16(ex2_approx_bf16(half));
            CHECK((power > 3e38L || power < 0x1p-126L || relative(got, power) <= 0x1p-7L));
            CHECK(std::fabs(float_from_bf16(tanh_approx_bf16(half)) - std::tanh(y)) <= 0x1p-8L);
        }
    }
    Generator random(22);
    for (int i = 0; i < 10000; ++i) {
        const auto a = std::bit_cast<double>(tessera::probe::detail::number(random, tessera::probe::bits_f64, 0, 900));
        const double positive = std::fabs(a);
        CHECK(std::fabs(rcp_approx_ftz(a) * a - 1) <= std::exp2(-19.9));
        CHECK(std::fabs(rsqrt_approx_ftz(positive) * std::sqrt(positive) - 1) <= std::exp2(-19.9));
        CHECK(std::fabs(rsqrt_approx(positive) * std::sqrt(positive) - 1) <= 0x1p-51);
        CHECK((std::bit_cast<std::uint64_t>(rcp_approx_ftz(a)) & 0xFFFF'FFFFU) == 0);
    }
}

TEST_CASE("special cases of the approximations")
{
    const float infinity = HUGE_VALF;
    const float nan = std::nanf("");
    const float tiny = 0x1p-130F;
    CHECK(rcp_approx(-0.0F, false) == -infinity);
    CHECK(rcp_approx(-tiny, true) == -infinity);
    CHECK(std::signbit(rcp_approx(-infinity, false)));
    CHECK(rcp_approx(0x1p127F, true) == 0.0F);
    CHECK(is_nan(rcp_approx(nan, false)));
    CHECK(is_nan(sqrt_approx(-1.0F, false)));
    CHECK(sqrt_approx(infinity, false) == infinity);
    CHECK(std::signbit(sqrt_approx(-tiny, true)));
    CHECK(rsqrt_approx(-0.0F, false) == -infinity);
    CHECK(rsqrt_approx(infinity, false) == 0.0F);
    CHECK(is_nan(rsqrt_approx(-2.0F, false)));
    CHECK(is_nan(sin_approx(infinity, false)));
    CHECK(is_nan(cos_approx(-infinity, true)));
    CHECK(std::signbit(sin_approx(-tiny, true)));
    CHECK(cos_approx(tiny, true) == 1.0F);
    CHECK(is_nan(lg2_approx(-1.0F, false)));
    CHECK(lg2_approx(-tiny, true) == -infinity);
    CHECK(lg2_approx(infinity, false) == infinity);
    CHECK(ex2_approx(-infinity, false) == 0.0F);
    CHECK(ex2_approx(128.0F, false) == infinity);
    CHECK(ex2_approx(-127.0F, false) == 0x1p-127F);
    CHECK(ex2_approx(-127.0F, true) == 0.0F);
    CHECK(tanh_approx(-infinity) == -1.0F);
    CHECK(is_nan(tanh_approx(nan)));
    CHECK(div_approx(1.0F, 0x1.8p126F, false) == 0.0F);
    CHECK(is_nan(div_approx(infinity, -0x1.8p126F, false)));
    CHECK(std::signbit(div_approx(-1.0F, 0x1.8p126F, false)));
    CHECK(div_full(0x1p126F, 0x1.8p126F, false) != 0.0F);
    CHECK(div_approx(1.0F, infinity, false) == 0.0F);
    CHECK(rcp_approx_ftz(0x1p-1040) == HUGE_VAL);
    CHECK(std::bit_cast<std::uint64_t>(rcp_approx_ftz(std::nan(""))) == 0x7FFF'FFFF'0000'0000U);
    CHECK(rsqrt_approx(0.0) == HUGE_VAL);
    CHECK(ex2_approx_f16(0x7C00, false) == 0x7C00);
    CHECK(ex2_approx_f16(0xFC00, false) == 0x0000);
    CHECK(tanh_approx_bf16(0xFF80) == 0xBF80);
    CHECK(tanh_approx_f16(0x7E01) == 0x7FFF);
}
