#include "float_ops.hpp"

#include <cfenv>
#include <utility>

// f32 and narrower: compute in double, "rounded to odd" (the last bit is set if anything was cut off), then round once
// to the target. 53 bits are more than twice 24 plus two, so the second rounding has all it needs. f64: use the
// processor's own rounding mode; volatile keeps the operation between the two changes of mode, whatever the compiler's
// flags.
namespace tessera::emulator::numerics {
namespace {

/// Moves an inexact result that was rounded to nearest to its odd neighbour. `error` has the sign of (true value -
/// rounded).
double to_odd(double rounded, double error)
{
    const auto bits = std::bit_cast<std::uint64_t>(rounded);
    if (error == 0.0 || (bits & 1U) != 0 || !std::isfinite(rounded)) {
        return rounded;
    }
    const bool grows = (error > 0.0) != std::signbit(rounded);
    return std::bit_cast<double>(grows ? bits + 1 : bits - 1);
}

/// a + b rounded to odd, by Knuth's two-sum.
double add_to_odd(double a, double b)
{
    const double sum = a + b;
    const double b_part = sum - a;
    const double error = (a - (sum - b_part)) + (b - b_part);
    return to_odd(sum, error);
}

/// An exact sum of zero is -0 in .rm unless both terms are +0, and +0 in the other modes unless both are -0.
double signed_zero_sum(double sum, double a, double b, Rounding rounding)
{
    if (sum == 0.0 && std::signbit(a) != std::signbit(b)) {
        return rounding == Rounding::down ? -0.0 : 0.0;
    }
    return sum;
}

double quotient_to_odd(double a, double b)
{
    const double quotient = a / b;
    if (!std::isfinite(quotient) || quotient == 0.0 || !std::isfinite(b)) {
        return quotient;
    }
    const double remainder = std::fma(-quotient, b, a);
    return to_odd(quotient, std::signbit(b) ? -remainder : remainder);
}

double root_to_odd(double a)
{
    const double root = std::sqrt(a);
    return std::isfinite(root) && root != 0.0 ? to_odd(root, std::fma(-root, root, a)) : root;
}

float finish(double value, const Modifiers& how)
{
    const float rounded = flush_if(float_from_double(value, how.rounding), how.ftz);
    return how.sat ? saturate(rounded) : rounded;
}

float finish_nearest(float value, const Modifiers& how)
{
    const float flushed = canonical(flush_if(value, how.ftz));
    return how.sat ? saturate(flushed) : flushed;
}

int host_mode(Rounding rounding)
{
    switch (rounding) {
        case Rounding::toward_zero: return FE_TOWARDZERO;
        case Rounding::down: return FE_DOWNWARD;
        case Rounding::up: return FE_UPWARD;
        case Rounding::nearest_even:
        case Rounding::nearest_away: break;
    }
    return FE_TONEAREST;
}

template <typename Operation>
double in_mode(Rounding rounding, Operation operation)
{
    if (rounding == Rounding::nearest_even) {
        return operation();
    }
    const int before = std::fegetround();
    std::fesetround(host_mode(rounding));
    const volatile double result = operation();
    std::fesetround(before);
    return result;
}

std::uint16_t finish_f16(double value, bool ftz, bool sat, bool relu)
{
    const auto code = static_cast<std::uint16_t>(encode(f16_layout, value, {.relu = relu, .sat = sat}));
    return ftz ? flush_f16(code) : code;
}

double f16_operand(std::uint16_t code, bool ftz) { return double{float_from_f16(ftz ? flush_f16(code) : code)}; }

std::uint16_t finish_bf16(double value, bool relu)
{
    return static_cast<std::uint16_t>(encode(bf16_layout, value, {.relu = relu}));
}

/// Returns true if a is the minimum; both are numbers.
template <typename Float>
bool is_less(Float a, Float b)
{
    return a < b || (a == b && std::signbit(a));
}

template <typename Float>
Float select(Float a, Float b, bool want_less, bool nan_wins, Float nan)
{
    if (a != a || b != b) {
        const bool both = a != a && b != b;
        return both || nan_wins ? nan : a != a ? b : a;
    }
    return is_less(a, b) == want_less ? a : b;
}

float select_f32(float a, float b, bool want_less, const Selection& how)
{
    a = flush_if(a, how.ftz);
    b = flush_if(b, how.ftz);
    const std::uint32_t sign = (std::bit_cast<std::uint32_t>(a) ^ std::bit_cast<std::uint32_t>(b)) & 0x8000'0000U;
    if (how.xorsign_abs || how.abs) {
        a = abs(a, false);
        b = abs(b, false);
    }
    const float chosen = select(a, b, want_less, how.nan, std::bit_cast<float>(canonical_nan_f32));
    if (how.xorsign_abs && chosen == chosen) {
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(chosen) | sign);
    }
    return chosen;
}

/// 16-bit formats have the same order as their f32 values, which convert back exactly. Only the sign of a NaN is lost,
/// so .xorsign takes it from the codes.
template <typename Decode, typename Encode>
std::uint16_t select_16(std::uint16_t a, std::uint16_t b, bool want_less, const Selection& how, Decode decode,
                        Encode encode)
{
    Selection plain = how;
    plain.ftz = false;
    plain.xorsign_abs = false;
    plain.abs = how.abs || how.xorsign_abs;
    const float chosen = select_f32(decode(a), decode(b), want_less, plain);
    const std::uint16_t code = encode(chosen);
    return how.xorsign_abs && chosen == chosen ? static_cast<std::uint16_t>(code | ((a ^ b) & 0x8000U)) : code;
}

std::uint16_t select_f16(std::uint16_t a, std::uint16_t b, bool want_less, const Selection& how)
{
    return select_16(
        how.ftz ? flush_f16(a) : a, how.ftz ? flush_f16(b) : b, want_less, how,
        [](std::uint16_t code) { return float_from_f16(code); }, [](float value) { return f16_from_float(value); });
}

std::uint16_t select_bf16(std::uint16_t a, std::uint16_t b, bool want_less, const Selection& how)
{
    return select_16(
        a, b, want_less, how, [](std::uint16_t code) { return float_from_bf16(code); },
        [](float value) { return bf16_from_float(value); });
}

template <typename Float>
bool classify(Float value, FloatClass which)
{
    switch (which) {
        case FloatClass::finite: return std::isfinite(value);
        case FloatClass::infinite: return std::isinf(value);
        case FloatClass::number: return value == value;
        case FloatClass::notanumber: return value != value;
        case FloatClass::normal: return std::isnormal(value);
        case FloatClass::subnormal: break;
    }
    return std::fpclassify(value) == FP_SUBNORMAL;
}

}  // namespace

double nan_of(double first, double second, double third)
{
    constexpr std::uint64_t quiet = 0x0008'0000'0000'0000;
    for (const double operand : {first, second, third}) {
        if (operand != operand) {
            return std::bit_cast<double>(std::bit_cast<std::uint64_t>(operand) | quiet);
        }
    }
    return std::bit_cast<double>(generated_nan_f64);
}

float add(float a, float b, const Modifiers& how)
{
    a = flush_if(a, how.ftz);
    b = flush_if(b, how.ftz);
    if (how.rounding == Rounding::nearest_even) {
        return finish_nearest(a + b, how);
    }
    const double sum = add_to_odd(double{a}, double{b});
    return finish(signed_zero_sum(sum, double{a}, double{b}, how.rounding), how);
}

float sub(float a, float b, const Modifiers& how) { return add(a, -b, how); }

float mul(float a, float b, const Modifiers& how)
{
    a = flush_if(a, how.ftz);
    b = flush_if(b, how.ftz);
    if (how.rounding == Rounding::nearest_even) {
        return finish_nearest(a * b, how);
    }
    return finish(double{a} * double{b}, how);  // exact: 48 bits
}

float fma(float a, float b, float c, const Modifiers& how)
{
    a = flush_if(a, how.ftz);
    b = flush_if(b, how.ftz);
    c = flush_if(c, how.ftz);
    if (how.rounding == Rounding::nearest_even) {
        return finish_nearest(std::fma(a, b, c), how);
    }
    const double product = double{a} * double{b};
    const double sum = add_to_odd(product, double{c});
    return finish(signed_zero_sum(sum, product, double{c}, how.rounding), how);
}

float div(float a, float b, const Modifiers& how)
{
    a = flush_if(a, how.ftz);
    b = flush_if(b, how.ftz);
    if (how.rounding == Rounding::nearest_even) {
        return finish_nearest(a / b, how);
    }
    return finish(quotient_to_odd(double{a}, double{b}), how);
}

float sqrt(float a, const Modifiers& how)
{
    a = flush_if(a, how.ftz);
    if (how.rounding == Rounding::nearest_even) {
        return finish_nearest(std::sqrt(a), how);
    }
    return finish(root_to_odd(double{a}), how);
}

float rcp(float a, const Modifiers& how) { return div(1.0F, a, how); }

double add(double a, double b, Rounding rounding)
{
    const volatile double x = a;
    const volatile double y = b;
    return propagate(in_mode(rounding, [&] { return x + y; }), b, a);
}

double sub(double a, double b, Rounding rounding)
{
    const volatile double x = a;
    const volatile double y = b;
    return propagate(in_mode(rounding, [&] { return x - y; }), b, a);
}

double mul(double a, double b, Rounding rounding)
{
    const volatile double x = a;
    const volatile double y = b;
    return propagate(in_mode(rounding, [&] { return x * y; }), b, a);
}

double fma(double a, double b, double c, Rounding rounding)
{
    const volatile double x = a;
    const volatile double y = b;
    const volatile double z = c;
    return propagate(in_mode(rounding, [&] { return std::fma(x, y, z); }), b, c, a);
}

double div(double a, double b, Rounding rounding)
{
    const volatile double x = a;
    const volatile double y = b;
    return propagate(in_mode(rounding, [&] { return x / y; }), a, b);
}

double sqrt(double a, Rounding rounding)
{
    const volatile double x = a;
    return propagate(in_mode(rounding, [&] { return std::sqrt(x); }), a);
}

double rcp(double a, Rounding rounding) { return div(1.0, a, rounding); }

std::uint16_t add_f16(std::uint16_t a, std::uint16_t b, bool ftz, bool sat)
{
    return finish_f16(f16_operand(a, ftz) + f16_operand(b, ftz), ftz, sat, false);  // exact: 42 bits at most
}

std::uint16_t sub_f16(std::uint16_t a, std::uint16_t b, bool ftz, bool sat)
{
    return finish_f16(f16_operand(a, ftz) - f16_operand(b, ftz), ftz, sat, false);
}

std::uint16_t mul_f16(std::uint16_t a, std::uint16_t b, bool ftz, bool sat)
{
    return finish_f16(f16_operand(a, ftz) * f16_operand(b, ftz), ftz, sat, false);
}

std::uint16_t fma_f16(std::uint16_t a, std::uint16_t b, std::uint16_t c, bool ftz, bool sat, bool relu)
{
    const double product = f16_operand(a, ftz) * f16_operand(b, ftz);
    return finish_f16(add_to_odd(product, f16_operand(c, ftz)), ftz, sat, relu);
}

std::uint16_t add_bf16(std::uint16_t a, std::uint16_t b)
{
    return finish_bf16(add_to_odd(double{float_from_bf16(a)}, double{float_from_bf16(b)}), false);
}

std::uint16_t sub_bf16(std::uint16_t a, std::uint16_t b)
{
    return finish_bf16(add_to_odd(double{float_from_bf16(a)}, -double{float_from_bf16(b)}), false);
}

std::uint16_t mul_bf16(std::uint16_t a, std::uint16_t b)
{
    return finish_bf16(double{float_from_bf16(a)} * double{float_from_bf16(b)}, false);
}

std::uint16_t fma_bf16(std::uint16_t a, std::uint16_t b, std::uint16_t c, bool relu)
{
    const double product = double{float_from_bf16(a)} * double{float_from_bf16(b)};
    return finish_bf16(add_to_odd(product, double{float_from_bf16(c)}), relu);
}

float minimum(float a, float b, const Selection& how) { return select_f32(a, b, true, how); }
float maximum(float a, float b, const Selection& how) { return select_f32(a, b, false, how); }
float minimum(float a, float b, float c, const Selection& how) { return minimum(minimum(a, b, how), c, how); }
float maximum(float a, float b, float c, const Selection& how) { return maximum(maximum(a, b, how), c, how); }

double minimum(double a, double b) { return select(a, b, true, false, nan_of(b, a)); }
double maximum(double a, double b) { return select(a, b, false, false, nan_of(b, a)); }

std::uint16_t minimum_f16(std::uint16_t a, std::uint16_t b, const Selection& how)
{
    return select_f16(a, b, true, how);
}
std::uint16_t maximum_f16(std::uint16_t a, std::uint16_t b, const Selection& how)
{
    return select_f16(a, b, false, how);
}
std::uint16_t minimum_bf16(std::uint16_t a, std::uint16_t b, const Selection& how)
{
    return select_bf16(a, b, true, how);
}
std::uint16_t maximum_bf16(std::uint16_t a, std::uint16_t b, const Selection& how)
{
    return select_bf16(a, b, false, how);
}

bool has_class(float value, FloatClass which) { return classify(value, which); }
bool has_class(double value, FloatClass which) { return classify(value, which); }

}  // namespace tessera::emulator::numerics
