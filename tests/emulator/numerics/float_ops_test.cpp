// Rounding of scalar arithmetic against exact integers. Results of hardware are in hopper_scalar_test.cpp.

#include "numerics/float_ops.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <limits>

#include "../hardware/probe_inputs.hpp"
#include "exact_integer.hpp"

namespace {

using namespace tessera::emulator::numerics;
using tessera::probe::Generator;
using tessera::slow::ExactInteger;

constexpr Rounding modes[] = {Rounding::nearest_even, Rounding::toward_zero, Rounding::down, Rounding::up};
constexpr float largest = std::numeric_limits<float>::max();

float operand(Generator& random)
{
    for (;;) {
        const auto bits = static_cast<std::uint32_t>(
            random.one_in(2) ? random.next() : tessera::probe::detail::number(random, tessera::probe::bits_f32, 0, 20));
        const auto value = std::bit_cast<float>(random.one_in(8) ? bits & 0x807F'FFFFU : bits);
        if (std::isfinite(value)) {
            return value;
        }
    }
}

/// `against(x)` is the sign of (exact result - x). Returns true if `got` is the exact result rounded by `mode`.
bool is_rounded(float got, Rounding mode, const std::function<int(const ExactInteger&)>& against)
{
    if (std::isinf(got)) {  // beyond the largest number, in a mode that rounds there
        const ExactInteger bound = ExactInteger(std::signbit(got), (1U << 25) - 1, 127 - 24);  // largest + half a step
        const ExactInteger last = ExactInteger::of(std::signbit(got) ? -largest : largest);
        const int sign = std::signbit(got) ? -1 : 1;
        return mode == Rounding::nearest_even
                   ? against(bound) * sign >= 0
                   : mode == (sign > 0 ? Rounding::up : Rounding::down) && against(last) * sign > 0;
    }
    const int side = against(ExactInteger::of(got));
    if (side == 0) {
        return true;
    }
    // The neighbour on the other side of the exact result.
    const float next = std::nextafter(got, side > 0 ? HUGE_VALF : -HUGE_VALF);
    if (std::isinf(next)) {  // the exact result is beyond the largest number, however far
        const ExactInteger bound(std::signbit(got), (1U << 25) - 1, 127 - 24);
        const bool goes_out = mode == (side > 0 ? Rounding::up : Rounding::down);
        return mode == Rounding::nearest_even ? against(bound) * side < 0 : !goes_out;
    }
    const ExactInteger neighbour = ExactInteger::of(next);
    if (against(neighbour) * side >= 0) {
        return false;
    }
    const bool result_is_negative = got != 0.0F ? std::signbit(got) : side < 0;
    switch (mode) {
        case Rounding::down: return side > 0;
        case Rounding::up: return side < 0;
        case Rounding::toward_zero: return result_is_negative ? side < 0 : side > 0;
        default: break;
    }
    // Nearest: twice the exact result against the sum of both neighbours.
    const ExactInteger sum = ExactInteger::of(got) + neighbour;
    // against() needs x itself: compare with the middle by halving, which needs one bit more than f32 has.
    const auto got_bits = std::bit_cast<std::uint32_t>(got);
    const float low = std::fabs(got) < std::fabs(next) ? got : next;
    const auto low_bits = std::bit_cast<std::uint32_t>(low) & 0x7FFF'FFFFU;
    const int field = static_cast<int>(low_bits >> 23);
    const std::uint64_t significand = (low_bits & 0x7F'FFFFU) | (field == 0 ? 0U : 0x80'0000U);
    const bool negative = low == 0.0F ? std::signbit(got == 0.0F ? next : got) : std::signbit(low);
    const ExactInteger middle(negative, 2 * significand + 1, std::max(field, 1) - 151);
    REQUIRE(compare(middle + middle, sum) == 0);
    const int from_middle = against(middle);
    return from_middle == 0 ? (got_bits & 1U) == 0 : from_middle == -side;
}

}  // namespace

TEST_CASE("f32 add, sub, mul and fma round the exact result")
{
    Generator random(11);
    int wrong = 0;
    for (int i = 0; i < 20000; ++i) {
        const float a = operand(random);
        const float b = random.one_in(3) ? std::nextafter(-a, operand(random)) : operand(random);
        const float c = random.one_in(3) ? -a * b : operand(random);
        for (const Rounding mode : modes) {
            const Modifiers how{mode, false, false};
            const auto sum = [&](const ExactInteger& x) {
                return compare(ExactInteger::of(a) + ExactInteger::of(b), x);
            };
            const auto difference = [&](const ExactInteger& x) {
                return compare(ExactInteger::of(a) + -ExactInteger::of(b), x);
            };
            const auto product = [&](const ExactInteger& x) { return compare(ExactInteger::product(a, b), x); };
            wrong += is_rounded(add(a, b, how), mode, sum) ? 0 : 1;
            wrong += is_rounded(sub(a, b, how), mode, difference) ? 0 : 1;
            wrong += is_rounded(mul(a, b, how), mode, product) ? 0 : 1;
            if (std::isfinite(c)) {
                const auto fused = [&](const ExactInteger& x) {
                    return compare(ExactInteger::product(a, b) + ExactInteger::of(c), x);
                };
                wrong += is_rounded(fma(a, b, c, how), mode, fused) ? 0 : 1;
            }
        }
        wrong += std::bit_cast<std::uint32_t>(add_rn(a, b)) != std::bit_cast<std::uint32_t>(add(a, b, Modifiers{}));
        wrong += std::bit_cast<std::uint32_t>(mul_rn(a, b)) != std::bit_cast<std::uint32_t>(mul(a, b, Modifiers{}));
    }
    CHECK(wrong == 0);
}

TEST_CASE("f32 div, rcp and sqrt round the exact result")
{
    Generator random(12);
    int wrong = 0;
    for (int i = 0; i < 20000; ++i) {
        // Small integers give exact quotients and roots; there are no ties.
        const float a = random.one_in(3) ? static_cast<float>(random.below(4096)) : operand(random);
        const float b = random.one_in(3) ? static_cast<float>(1 + random.below(64)) : operand(random);
        for (const Rounding mode : modes) {
            const Modifiers how{mode, false, false};
            const float quotient = b == 0.0F ? 1.0F : div(a, b, how);
            // a / b against the f32 x: compare a with x * b. A neighbour in between needs a separate check.
            if (b != 0.0F && std::isfinite(quotient) && std::fabs(quotient) < largest) {
                const auto side = [&](float x) {
                    return compare(ExactInteger::of(a), ExactInteger::product(x, b)) * (std::signbit(b) ? -1 : 1);
                };
                const int exact = side(quotient);
                const float up = std::nextafter(quotient, HUGE_VALF);
                const float down = std::nextafter(quotient, -HUGE_VALF);
                const bool truncates_up = std::signbit(a) != std::signbit(b);
                const bool low_end = exact == 0 || (exact > 0 && side(up) < 0);
                const bool high_end = exact == 0 || (exact < 0 && side(down) > 0);
                const bool right = mode == Rounding::down          ? low_end
                                   : mode == Rounding::up          ? high_end
                                   : mode == Rounding::toward_zero ? (truncates_up ? high_end : low_end)
                                                                   : low_end || high_end;
                wrong += right ? 0 : 1;
                wrong += mode == Rounding::nearest_even && quotient != a / b ? 1 : 0;
            }
            const float x = std::fabs(a);
            const float root = tessera::emulator::numerics::sqrt(x, how);
            const auto square_side = [&](float y) { return compare(ExactInteger::of(x), ExactInteger::product(y, y)); };
            const bool low_end =
                square_side(root) >= 0 && (square_side(root) == 0 || square_side(std::nextafter(root, HUGE_VALF)) < 0);
            const bool high_end =
                square_side(root) <= 0 && (square_side(root) == 0 || square_side(std::nextafter(root, 0.0F)) > 0);
            wrong += (mode == Rounding::up             ? high_end
                      : mode == Rounding::nearest_even ? low_end || high_end
                                                       : low_end)
                         ? 0
                         : 1;
            wrong += b != 0.0F &&
                     std::bit_cast<std::uint32_t>(rcp(b, how)) != std::bit_cast<std::uint32_t>(div(1.0F, b, how));
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("f16 and bf16 arithmetic rounds once")
{
    Generator random(13);
    int wrong = 0;
    for (int i = 0; i < 200000; ++i) {
        const auto a = static_cast<std::uint16_t>(random.next());
        const auto b = static_cast<std::uint16_t>(random.next());
        const auto c = static_cast<std::uint16_t>(random.one_in(2) ? fma_f16(a, b, 0x8000) ^ 0x8000U : random.next());
        // 113 bits of fraction hold every sum of an f16 product and an f16.
        const auto wide = [](std::uint16_t code) { return static_cast<__float128>(float_from_f16(code)); };
        const __float128 exact = wide(a) * wide(b) + wide(c);
        if (exact - exact == 0) {
            // To f64, rounded to odd: the next rounding is then correct.
            auto narrow = static_cast<double>(exact);
            const __float128 error = exact - static_cast<__float128>(narrow);
            if (error != 0 && (std::bit_cast<std::uint64_t>(narrow) & 1U) == 0) {
                narrow = std::nextafter(narrow, error > 0 ? HUGE_VAL : -HUGE_VAL);
            }
            wrong += fma_f16(a, b, c) != encode(f16_layout, narrow);
            wrong += fma_f16(a, b, c, false, false, true) != encode(f16_layout, narrow, {.relu = true});
        }
    }
    CHECK(wrong == 0);
    // 1.5 + 2^-7 + 2^-8 is a tie of bf16; the addend, far below f32's last place, breaks it.
    CHECK(fma_bf16(0x3F81, 0x3FC0, 0x0080) == 0x3FC2);
    CHECK(fma_bf16(0x3F81, 0x3FC0, 0x8080) == 0x3FC1);
    CHECK(fma_bf16(0x3F80, 0x3F80, 0x3B80) == 0x3F80);  // 1 + 2^-8: a tie, to even
    CHECK(fma_bf16(0x3F80, 0x3F80, 0x3B81) == 0x3F81);
    CHECK(mul_bf16(0x0080, 0x3F00) == 0x0040);
    CHECK(each_half([](std::uint16_t x, std::uint16_t y) { return add_f16(x, y); }, 0x3C00'4000U, 0x3C00'3C00U) ==
          0x4000'4200U);
}

TEST_CASE("f64 rounding modes bracket the exact result")
{
    Generator random(14);
    int wrong = 0;
    for (int i = 0; i < 50000; ++i) {
        const auto a = std::bit_cast<double>(tessera::probe::detail::number(random, tessera::probe::bits_f64, 0, 30));
        const auto b = std::bit_cast<double>(tessera::probe::detail::number(random, tessera::probe::bits_f64, 0, 30));
        const __float128 product = static_cast<__float128>(a) * b;  // 106 bits: exact
        const double down = mul(a, b, Rounding::down);
        const double up = mul(a, b, Rounding::up);
        wrong += static_cast<__float128>(down) <= product && product <= static_cast<__float128>(up) ? 0 : 1;
        wrong += up == down || up == std::nextafter(down, HUGE_VAL) ? 0 : 1;
        wrong += mul(a, b, Rounding::toward_zero) == (product < 0 ? up : down) ? 0 : 1;
        wrong += mul(a, b, Rounding::nearest_even) == a * b ? 0 : 1;
        const double c = -static_cast<double>(product);
        const double rest = fma(a, b, c, Rounding::nearest_even);
        wrong += static_cast<__float128>(rest) == product + c ? 0 : 1;
        const double quotient_up = div(a, b, Rounding::up);
        const double quotient_down = div(a, b, Rounding::down);
        const __float128 sign = b < 0 ? -1 : 1;
        wrong += (static_cast<__float128>(quotient_up) * b - a) * sign >= 0 ? 0 : 1;
        wrong += (static_cast<__float128>(quotient_down) * b - a) * sign <= 0 ? 0 : 1;
        const double root_up = tessera::emulator::numerics::sqrt(std::fabs(a), Rounding::up);
        const double root_down = tessera::emulator::numerics::sqrt(std::fabs(a), Rounding::down);
        wrong += static_cast<__float128>(root_up) * root_up >= std::fabs(a) ? 0 : 1;
        wrong += static_cast<__float128>(root_down) * root_down <= std::fabs(a) ? 0 : 1;
        wrong += add(a, b, Rounding::up) >= add(a, b, Rounding::down) ? 0 : 1;
    }
    CHECK(wrong == 0);
    CHECK(add(1.0, 0x1p-80, Rounding::up) == 1.0 + 0x1p-52);
    CHECK(sub(1.0, 0x1p-80, Rounding::toward_zero) == 1.0 - 0x1p-53);
    CHECK(std::signbit(add(1.0, -1.0, Rounding::down)));
    CHECK(!std::signbit(add(1.0, -1.0, Rounding::up)));
}

TEST_CASE("arithmetic flushes to zero, saturates and keeps signed zeros")
{
    const float tiny = 0x1p-130F;
    CHECK(add(tiny, tiny, {.ftz = true}) == 0.0F);
    CHECK(std::signbit(add(-tiny, -tiny, {.ftz = true})));
    CHECK(mul(0x1p-70F, -0x1p-70F, {.ftz = true}) == 0.0F);
    CHECK(std::signbit(mul(0x1p-70F, -0x1p-70F, {.ftz = true})));
    CHECK(add(tiny, 0.0F, Modifiers{}) == tiny);
    CHECK(add(3.0F, 1.0F, {.sat = true}) == 1.0F);
    CHECK(add(-3.0F, 1.0F, {.sat = true}) == 0.0F);
    CHECK(mul(HUGE_VALF, 0.0F, {.sat = true}) == 0.0F);
    CHECK(std::signbit(add(1.0F, -1.0F, {.rounding = Rounding::down})));
    CHECK(!std::signbit(add(1.0F, -1.0F, Modifiers{})));
    CHECK(std::signbit(fma(1.0F, 1.0F, -1.0F, {.rounding = Rounding::down})));
    CHECK(mul(largest, 2.0F, {.rounding = Rounding::toward_zero}) == largest);
    CHECK(mul(largest, -2.0F, {.rounding = Rounding::up}) == -largest);
    CHECK(std::isinf(mul(largest, 2.0F, {.rounding = Rounding::up})));
    CHECK(div(1.0F, 0.0F, {.rounding = Rounding::toward_zero}) == HUGE_VALF);
    CHECK(std::bit_cast<std::uint32_t>(add(HUGE_VALF, -HUGE_VALF, Modifiers{})) == canonical_nan_f32);
    CHECK(std::bit_cast<std::uint64_t>(add(HUGE_VAL, -HUGE_VAL, Rounding::nearest_even)) == generated_nan_f64);
}

TEST_CASE("min and max")
{
    const float nan = std::nanf("");
    CHECK(std::signbit(minimum(0.0F, -0.0F, {})));
    CHECK(!std::signbit(maximum(-0.0F, 0.0F, {})));
    CHECK(minimum(nan, 2.0F, {}) == 2.0F);
    CHECK(std::bit_cast<std::uint32_t>(minimum(nan, 2.0F, {.nan = true})) == canonical_nan_f32);
    CHECK(std::bit_cast<std::uint32_t>(maximum(nan, -nan, {})) == canonical_nan_f32);
    CHECK(minimum(-3.0F, 2.0F, {.xorsign_abs = true}) == -2.0F);
    CHECK(maximum(-3.0F, -2.0F, {.xorsign_abs = true}) == 3.0F);
    CHECK(minimum(3.0F, -7.0F, 5.0F, {}) == -7.0F);
    CHECK(maximum(3.0F, -7.0F, 5.0F, {.abs = true}) == 7.0F);
    CHECK(maximum(-1.0, 2.0) == 2.0);
    CHECK(minimum_f16(0xC000, 0x3C00, {}) == 0xC000);
    CHECK(maximum_bf16(0x7FC0, 0x3F80, {.nan = true}) == 0x7FFF);
    CHECK(maximum_f16(0x0001, 0x8000, {.ftz = true}) == 0x0000);
}

TEST_CASE("classes, signs")
{
    CHECK(has_class(1.0F, FloatClass::normal));
    CHECK(has_class(0x1p-140F, FloatClass::subnormal));
    CHECK(!has_class(0.0F, FloatClass::subnormal));
    CHECK(has_class(HUGE_VAL, FloatClass::infinite));
    CHECK(has_class(HUGE_VAL, FloatClass::number));
    CHECK(!has_class(HUGE_VAL, FloatClass::finite));
    CHECK(has_class(std::nan(""), FloatClass::notanumber));
    CHECK(tessera::emulator::numerics::copysign(-1.0F, 3.0F) == -3.0F);
    CHECK(abs(-0x1p-130F, true) == 0.0F);
    CHECK(neg(2.0F, false) == -2.0F);
}
