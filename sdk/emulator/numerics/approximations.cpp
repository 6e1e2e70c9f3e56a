#include "approximations.hpp"

#include <cmath>

#include "float_ops.hpp"

namespace tessera::emulator::numerics {
namespace {

float finish(double value, bool ftz) { return canonical(flush_if(static_cast<float>(value), ftz)); }

/// The upper 32 bits of a double. A subnormal number becomes zero; a NaN with its payload only in the lower bits
/// becomes infinity.
double upper_half(double value)
{
    std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
    const bool is_tiny = (bits & 0x7FF0'0000'0000'0000U) == 0;
    bits &= is_tiny ? 0x8000'0000'0000'0000U : 0xFFFF'FFFF'0000'0000U;
    return std::bit_cast<double>(bits);
}

double finish_upper_half(double value)
{
    constexpr std::uint64_t nan = 0x7FFF'FFFF'0000'0000;
    return value == value ? upper_half(value) : std::bit_cast<double>(nan);
}

}  // namespace

float rcp_approx(float a, bool ftz) { return finish(1.0 / double{flush_if(a, ftz)}, ftz); }

float sqrt_approx(float a, bool ftz) { return finish(std::sqrt(double{flush_if(a, ftz)}), ftz); }

float rsqrt_approx(float a, bool ftz) { return finish(1.0 / std::sqrt(double{flush_if(a, ftz)}), ftz); }

float sin_approx(float a, bool ftz) { return finish(std::sin(double{flush_if(a, ftz)}), ftz); }

float cos_approx(float a, bool ftz) { return finish(std::cos(double{flush_if(a, ftz)}), ftz); }

float lg2_approx(float a, bool ftz) { return finish(std::log2(double{flush_if(a, ftz)}), ftz); }

float ex2_approx(float a, bool ftz) { return finish(std::exp2(double{flush_if(a, ftz)}), ftz); }

float tanh_approx(float a) { return finish(std::tanh(double{a}), false); }

float div_approx(float a, float b, bool ftz)
{
    a = flush_if(a, ftz);
    b = flush_if(b, ftz);
    if (std::fabs(b) > 0x1p126F && std::isfinite(b)) {
        // The reciprocal is subnormal in the hardware's table and reads as zero; infinity times zero is NaN.
        const float zero = std::signbit(a) != std::signbit(b) ? -0.0F : 0.0F;
        return std::isfinite(a) ? zero : std::bit_cast<float>(canonical_nan_f32);
    }
    return finish(double{a} / double{b}, ftz);
}

float div_full(float a, float b, bool ftz) { return finish(double{flush_if(a, ftz)} / double{flush_if(b, ftz)}, ftz); }

double rcp_approx_ftz(double a) { return finish_upper_half(1.0 / upper_half(a)); }

double rsqrt_approx_ftz(double a) { return finish_upper_half(1.0 / std::sqrt(upper_half(a))); }

double rsqrt_approx(double a) { return propagate(1.0 / std::sqrt(a), a); }

std::uint16_t ex2_approx_f16(std::uint16_t a, bool ftz)
{
    const double value = double{float_from_f16(ftz ? flush_f16(a) : a)};
    const auto code = static_cast<std::uint16_t>(encode(f16_layout, std::exp2(value)));
    return ftz ? flush_f16(code) : code;
}

std::uint16_t tanh_approx_f16(std::uint16_t a)
{
    return static_cast<std::uint16_t>(encode(f16_layout, std::tanh(double{float_from_f16(a)})));
}

std::uint16_t ex2_approx_bf16(std::uint16_t a)
{
    const double power = std::exp2(double{flush(float_from_bf16(a))});
    const auto code = static_cast<std::uint16_t>(encode(bf16_layout, power));
    return static_cast<std::uint16_t>((code & 0x7F80U) == 0 ? code & 0x8000U : code);
}

std::uint16_t tanh_approx_bf16(std::uint16_t a)
{
    return static_cast<std::uint16_t>(encode(bf16_layout, std::tanh(double{float_from_bf16(a)})));
}

}  // namespace tessera::emulator::numerics
