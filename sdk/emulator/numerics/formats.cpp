#include "formats.hpp"

#include <cmath>

namespace tessera::emulator::numerics {
namespace {

const Layout& layout_of(Format format)
{
    switch (format) {
        case Format::f16: return f16_layout;
        case Format::bf16: return bf16_layout;
        case Format::tf32: return tf32_layout;
        case Format::e5m2: return e5m2_layout;
        case Format::e2m3: return e2m3_layout;
        case Format::e3m2: return e3m2_layout;
        case Format::e2m1: return e2m1_layout;
        case Format::e4m3:
        case Format::ue8m0:
        case Format::ue4m3: break;
    }
    return e4m3_layout;
}

template <typename Float>
Float integral(Float value, Rounding rounding)
{
    switch (rounding) {
        case Rounding::toward_zero: return std::trunc(value);
        case Rounding::down: return std::floor(value);
        case Rounding::up: return std::ceil(value);
        case Rounding::nearest_away: return std::round(value);
        case Rounding::nearest_even: break;
    }
    return std::nearbyint(value);
}

/// One step away from zero (+1) or toward it (-1) on the number line of f32.
float step(float value, int direction)
{
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) + static_cast<std::uint32_t>(direction));
}

}  // namespace

float decode(Format format, std::uint32_t code)
{
    switch (format) {
        case Format::f16: return float_from_f16(static_cast<std::uint16_t>(code));
        case Format::bf16: return float_from_bf16(static_cast<std::uint16_t>(code));
        case Format::tf32: return float_from_tf32(code);
        case Format::ue8m0: return float_from_ue8m0(static_cast<std::uint8_t>(code));
        case Format::ue4m3: return float_from_ue4m3(static_cast<std::uint8_t>(code));
        case Format::e2m3: return float_from_e2m3(static_cast<std::uint8_t>(code));
        case Format::e3m2: return float_from_e3m2(static_cast<std::uint8_t>(code));
        case Format::e2m1: return float_from_e2m1(static_cast<std::uint8_t>(code));
        case Format::e5m2: return float_from_e5m2(static_cast<std::uint8_t>(code));
        case Format::e4m3: break;
    }
    return float_from_e4m3(static_cast<std::uint8_t>(code));
}

std::uint32_t encode(Format format, double value, const Conversion& how)
{
    if (format == Format::ue8m0) {
        // Narrowing to f32 in the same direction first cannot pass a power of two.
        const float narrowed = float_from_double(std::fabs(value), how.rounding);
        return ue8m0_from_float(narrowed, how.rounding, how.satfinite);
    }
    if (format == Format::ue4m3) {
        return static_cast<std::uint32_t>(encode(e4m3_layout, value, how)) & 0x7FU;
    }
    const std::uint64_t code = encode(layout_of(format), value, how);
    if (format == Format::tf32) {
        return static_cast<std::uint32_t>(code << 13);
    }
    return static_cast<std::uint32_t>(code);
}

int element_bits(Format format)
{
    switch (format) {
        case Format::f16:
        case Format::bf16: return 16;
        case Format::tf32: return 32;
        case Format::e2m3:
        case Format::e3m2: return 6;
        case Format::e2m1: return 4;
        case Format::e4m3:
        case Format::e5m2:
        case Format::ue8m0:
        case Format::ue4m3: break;
    }
    return 8;
}

const char* format_name(Format format)
{
    switch (format) {
        case Format::f16: return "f16";
        case Format::bf16: return "bf16";
        case Format::tf32: return "tf32";
        case Format::e4m3: return "e4m3";
        case Format::e5m2: return "e5m2";
        case Format::e2m3: return "e2m3";
        case Format::e3m2: return "e3m2";
        case Format::e2m1: return "e2m1";
        case Format::ue8m0: return "ue8m0";
        case Format::ue4m3: return "ue4m3";
    }
    return "?";
}

std::uint8_t ue8m0_from_float(float value, Rounding rounding, bool satfinite)
{
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFF'FFFFU;
    if (magnitude > 0x7F80'0000U) {
        return 0xFF;
    }
    std::uint32_t code = magnitude >> 23;
    constexpr std::uint32_t smallest = 0x0040'0000;  // 2^-127 as an f32
    if (rounding == Rounding::up && (magnitude & 0x007F'FFFFU) != 0 && magnitude > smallest) {
        ++code;
    }
    return static_cast<std::uint8_t>(satfinite && code > 0xFE ? 0xFE : code);
}

std::uint32_t encode_stochastic(Format format, float value, std::uint32_t random_bits, int random_count, bool satfinite,
                                bool relu)
{
    const Layout& layout = layout_of(format);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const bool negative = (bits >> 31) != 0;
    const std::uint32_t field = (bits >> 23) & 0xFF;
    if (field == 0xFF || (negative && relu)) {
        return encode(format, double{value}, {Rounding::toward_zero, satfinite, relu, false});
    }
    const std::uint64_t significand = (bits & 0x7F'FFFFU) | (field == 0 ? 0U : 0x80'0000U);
    const int exponent = (field == 0 ? 1 : static_cast<int>(field)) - 127 - 23;
    const int leading = significand == 0 ? exponent : exponent + 63 - std::countl_zero(significand);
    const int scale = leading > 1 - layout.bias ? leading : 1 - layout.bias;
    // The unit of one random bit; lower bits are cut off.
    const int unit = scale - layout.mantissa_bits - random_count;
    const int shift = unit - exponent;
    const std::uint64_t cut = shift >= 64 ? 0 : shift >= 0 ? significand >> shift : significand << -shift;
    const std::uint64_t sum = cut + (random_bits & ((std::uint64_t{1} << random_count) - 1));
    const std::uint64_t kept = sum >> random_count;
    const std::uint64_t code =
        encode_exact(layout, negative, kept, unit + random_count, Rounding::nearest_even, satfinite);
    return static_cast<std::uint32_t>(format == Format::tf32 ? code << 13 : code);
}

float float_from_double(double value, Rounding rounding)
{
    if (value != value) {
        return std::bit_cast<float>(canonical_nan_f32);
    }
    const auto nearest = static_cast<float>(value);
    if (rounding == Rounding::nearest_even || double{nearest} == value || std::isinf(value)) {
        return nearest;
    }
    const bool negative = std::signbit(value);
    const bool away = rounding == Rounding::up ? !negative : rounding == Rounding::down ? negative : false;
    const bool is_beyond = std::fabs(double{nearest}) > std::fabs(value);
    if (away == is_beyond) {
        return nearest;
    }
    return step(nearest, away ? 1 : -1);
}

float float_from_f64(double value, Rounding rounding)
{
    return value == value ? float_from_double(value, rounding)
                          : std::bit_cast<float>(static_cast<std::uint32_t>(encode_f64(f32_layout, value)));
}

float round_to_integral(float value, Rounding rounding)
{
    return value != value ? std::bit_cast<float>(canonical_nan_f32) : integral(value, rounding);
}

double round_to_integral(double value, Rounding rounding)
{
    constexpr std::uint64_t quiet = 0x0008'0000'0000'0000;
    return value != value ? std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) | quiet)
                          : integral(value, rounding);
}

void float_from_f16(const std::uint16_t* codes, float* values, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        // Like the scalar form, without branches.
        const std::uint32_t sign = (codes[i] & 0x8000U) << 16;
        const std::uint32_t magnitude = codes[i] & 0x7FFFU;
        const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
        std::uint32_t bits = std::bit_cast<std::uint32_t>(scaled) | sign;
        bits = magnitude == 0x7C00U ? 0x7F80'0000U | sign : bits;
        bits = magnitude > 0x7C00U ? canonical_nan_f32 : bits;
        values[i] = std::bit_cast<float>(bits);
    }
}

void float_from_bf16(const std::uint16_t* codes, float* values, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = float_from_bf16(codes[i]);
    }
}

void float_from_tf32(const std::uint32_t* words, float* values, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t bits = words[i] & 0xFFFF'E000U;
        values[i] = std::bit_cast<float>((bits & 0x7FFF'FFFFU) > 0x7F80'0000U ? canonical_nan_f32 : bits);
    }
}

void float_from_bytes(Format format, const std::uint8_t* codes, float* values, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = decode(format, codes[i]);
    }
}

}  // namespace tessera::emulator::numerics
