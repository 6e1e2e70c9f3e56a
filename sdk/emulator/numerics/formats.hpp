#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

/// The number formats of PTX and the conversions between them (PTX ISA 5.2.3 "Alternate Floating-Point Data Formats"
/// and 9.7.9.21 "cvt"). A code is the bit pattern of a value, right aligned. One conversion rounds exactly once, in the
/// given mode. Nothing throws.
namespace tessera::emulator::numerics {

/// Rounding modifiers of PTX, with their PTX names as comments.
enum class Rounding : std::uint8_t {
    nearest_even,  ///< .rn, .rni
    toward_zero,   ///< .rz, .rzi
    down,          ///< .rm, .rmi
    up,            ///< .rp, .rpi
    nearest_away,  ///< .rna, only of cvt to tf32
};

enum class Format : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, ue8m0, ue4m3 };

/// The modifiers of one narrowing `cvt`.
struct Conversion {
    Rounding rounding = Rounding::nearest_even;
    /// .satfinite: values beyond the largest finite value, infinity included, become the largest finite value.
    bool satfinite = false;
    /// .relu: negative results and -0 become +0; NaN stays the canonical NaN.
    bool relu = false;
    /// .sat: clamp to [0, 1], NaN becomes +0.
    bool sat = false;
};

/// Bit layout of a format: sign (if any), exponent_bits, mantissa_bits from the top down.
struct Layout {
    int mantissa_bits;
    int exponent_bits;
    int bias;
    std::uint64_t max_finite;     ///< code of the largest finite value
    std::uint64_t beyond;         ///< code of an overflow: infinity, or NaN or the maximum if there is none
    std::uint64_t canonical_nan;  ///< code of the NaN that PTX instructions produce (the maximum if there is no NaN)
    bool has_infinity;

    [[nodiscard]] constexpr int sign_bit() const { return mantissa_bits + exponent_bits; }
    [[nodiscard]] constexpr std::uint64_t sign_mask() const { return std::uint64_t{1} << sign_bit(); }
};

inline constexpr Layout f64_layout{52,  11, 1023, 0x7FEF'FFFF'FFFF'FFFF, 0x7FF0'0000'0000'0000, 0x7FFF'FFFF'FFFF'FFFF,
                                   true};
inline constexpr Layout f32_layout{23, 8, 127, 0x7F7F'FFFF, 0x7F80'0000, 0x7FFF'FFFF, true};
inline constexpr Layout f16_layout{10, 5, 15, 0x7BFF, 0x7C00, 0x7FFF, true};
inline constexpr Layout bf16_layout{7, 8, 127, 0x7F7F, 0x7F80, 0x7FFF, true};
/// tf32 without the 13 low padding bits; for the padded form see tf32_from_float.
inline constexpr Layout tf32_layout{10, 8, 127, 0x3FBFF, 0x3FC00, 0x3FFFF, true};
inline constexpr Layout e4m3_layout{3, 4, 7, 0x7E, 0x7F, 0x7F, false};
inline constexpr Layout e5m2_layout{2, 5, 15, 0x7B, 0x7C, 0x7F, true};
inline constexpr Layout e2m3_layout{3, 2, 1, 0x1F, 0x1F, 0x1F, false};
inline constexpr Layout e3m2_layout{2, 3, 3, 0x1F, 0x1F, 0x1F, false};
inline constexpr Layout e2m1_layout{1, 2, 1, 0x7, 0x7, 0x7, false};

inline constexpr std::uint32_t canonical_nan_f32 = 0x7FFF'FFFF;
inline constexpr std::uint16_t canonical_nan_f16 = 0x7FFF;
inline constexpr std::uint16_t canonical_nan_bf16 = 0x7FFF;

/// Rounds (-1)^negative * significand * 2^exponent to the layout and returns the code without its sign. The result may
/// exceed `max_finite`: the caller resolves overflow. `inexact_below`: the true magnitude is slightly larger than the
/// given one (by less than one unit of `significand`).
constexpr std::uint64_t round_magnitude(const Layout& layout, bool negative, std::uint64_t significand, int exponent,
                                        Rounding rounding, bool inexact_below = false)
{
    if (significand == 0 && !inexact_below) {
        return 0;
    }
    const int leading = significand == 0 ? exponent - 1 : exponent + 63 - std::countl_zero(significand);
    const int smallest = 1 - layout.bias;
    const int scale = leading > smallest ? leading : smallest;
    const int dropped = scale - layout.mantissa_bits - exponent;
    std::uint64_t kept = 0;
    bool half = false;
    bool below_half = inexact_below;
    if (dropped <= 0) {
        kept = significand << -dropped;
    } else if (dropped <= 64) {
        kept = dropped == 64 ? 0 : significand >> dropped;
        half = ((significand >> (dropped - 1)) & 1U) != 0;
        below_half = below_half || (significand & ((std::uint64_t{1} << (dropped - 1)) - 1)) != 0;
    } else {
        below_half = true;
    }
    bool increment = false;
    switch (rounding) {
        case Rounding::nearest_even: increment = half && (below_half || (kept & 1U) != 0); break;
        case Rounding::nearest_away: increment = half; break;
        case Rounding::toward_zero: break;
        case Rounding::down: increment = negative && (half || below_half); break;
        case Rounding::up: increment = !negative && (half || below_half); break;
    }
    // The hidden bit of a normal number adds the missing one to its exponent field.
    return (static_cast<std::uint64_t>(scale - smallest) << layout.mantissa_bits) + kept + (increment ? 1U : 0U);
}

/// The whole code, sign and overflow included, of (-1)^negative * significand * 2^exponent.
constexpr std::uint64_t encode_exact(const Layout& layout, bool negative, std::uint64_t significand, int exponent,
                                     Rounding rounding, bool satfinite = false, bool inexact_below = false)
{
    std::uint64_t code = round_magnitude(layout, negative, significand, exponent, rounding, inexact_below);
    if (code > layout.max_finite) {
        const bool stays_finite = rounding == Rounding::toward_zero || (rounding == Rounding::down && !negative) ||
                                  (rounding == Rounding::up && negative);
        code = satfinite || stays_finite ? layout.max_finite : layout.beyond;
    }
    return negative ? code | layout.sign_mask() : code;
}

/// The code of a value in any layout except f64's. NaN gives the canonical NaN, as for instructions whose source is f32
/// or narrower; for an f64 source see encode_f64.
constexpr std::uint64_t encode(const Layout& layout, double value, const Conversion& how = {})
{
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const bool negative = (bits >> 63) != 0;
    const int field = static_cast<int>((bits >> 52) & 0x7FF);
    const std::uint64_t fraction = bits & 0xF'FFFF'FFFF'FFFF;
    if (field == 0x7FF && fraction != 0) {
        return how.sat ? 0 : layout.canonical_nan;
    }
    if (negative && (how.relu || how.sat)) {
        return 0;
    }
    if (how.sat && value > 1.0) {
        return static_cast<std::uint64_t>(layout.bias) << layout.mantissa_bits;
    }
    if (field == 0x7FF) {
        const std::uint64_t code = how.satfinite ? layout.max_finite : layout.beyond;
        return negative ? code | layout.sign_mask() : code;
    }
    const std::uint64_t significand = field == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
    const int exponent = (field == 0 ? 1 : field) - 1023 - 52;
    return encode_exact(layout, negative, significand, exponent, how.rounding, how.satfinite);
}

/// Like encode(), for `cvt` from f64: a NaN keeps its sign and the top bits of its payload, made quiet (measured on an
/// H200).
constexpr std::uint64_t encode_f64(const Layout& layout, double value, const Conversion& how = {})
{
    if (value == value || how.sat) {
        return encode(layout, value, how);
    }
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t payload = (bits & 0xF'FFFF'FFFF'FFFF) >> (52 - layout.mantissa_bits);
    const std::uint64_t quiet = std::uint64_t{1} << (layout.mantissa_bits - 1);
    return ((bits >> 63) << layout.sign_bit()) | layout.beyond | quiet | payload;
}

/// The exact value of a code of a format not wider than f32; NaN codes give the canonical f32 NaN.
constexpr float decode(const Layout& layout, std::uint32_t code)
{
    const std::uint32_t magnitude = code & static_cast<std::uint32_t>(layout.sign_mask() - 1);
    const std::uint32_t sign = (code & static_cast<std::uint32_t>(layout.sign_mask())) != 0 ? 0x8000'0000U : 0U;
    if (magnitude > layout.max_finite) {
        const bool infinite = layout.has_infinity && magnitude == layout.beyond;
        return std::bit_cast<float>(infinite ? sign | 0x7F80'0000U : canonical_nan_f32);
    }
    const std::uint32_t fraction = magnitude & ((1U << layout.mantissa_bits) - 1U);
    const std::uint32_t field = magnitude >> layout.mantissa_bits;
    const std::uint32_t significand = field == 0 ? fraction : fraction | (1U << layout.mantissa_bits);
    const int exponent = (field == 0 ? 1 : static_cast<int>(field)) - layout.bias - layout.mantissa_bits;
    const std::uint64_t bits = round_magnitude(f32_layout, false, significand, exponent, Rounding::nearest_even);
    return std::bit_cast<float>(sign | static_cast<std::uint32_t>(bits));
}

namespace detail {
template <std::size_t Count>
constexpr std::array<float, Count> decode_table(const Layout& layout)
{
    std::array<float, Count> table{};
    for (std::size_t code = 0; code < Count; ++code) {
        table[code] = decode(layout, static_cast<std::uint32_t>(code));
    }
    return table;
}
}  // namespace detail

inline constexpr std::array<float, 256> e4m3_values = detail::decode_table<256>(e4m3_layout);
inline constexpr std::array<float, 256> e5m2_values = detail::decode_table<256>(e5m2_layout);
inline constexpr std::array<float, 64> e2m3_values = detail::decode_table<64>(e2m3_layout);
inline constexpr std::array<float, 64> e3m2_values = detail::decode_table<64>(e3m2_layout);
inline constexpr std::array<float, 16> e2m1_values = detail::decode_table<16>(e2m1_layout);

constexpr float float_from_e4m3(std::uint8_t code) { return e4m3_values[code]; }
constexpr float float_from_e5m2(std::uint8_t code) { return e5m2_values[code]; }
/// Ignores the upper two bits of the byte, like the tensor cores.
constexpr float float_from_e2m3(std::uint8_t code) { return e2m3_values[code & 0x3FU]; }
constexpr float float_from_e3m2(std::uint8_t code) { return e3m2_values[code & 0x3FU]; }
/// Ignores the upper four bits of the byte.
constexpr float float_from_e2m1(std::uint8_t code) { return e2m1_values[code & 0xFU]; }
/// 2^(code - 127); 0xFF is NaN.
constexpr float float_from_ue8m0(std::uint8_t code)
{
    return std::bit_cast<float>(code == 0xFF ? canonical_nan_f32
                                : code == 0  ? 0x0040'0000U
                                             : std::uint32_t{code} << 23);
}
/// Ignores the sign bit, like the tensor cores.
constexpr float float_from_ue4m3(std::uint8_t code) { return e4m3_values[code & 0x7FU]; }

constexpr float float_from_f16(std::uint16_t code)
{
    const std::uint32_t sign = (code & 0x8000U) << 16;
    const std::uint32_t magnitude = code & 0x7FFFU;
    if (magnitude > 0x7C00U) {
        return std::bit_cast<float>(canonical_nan_f32);
    }
    // Multiplying changes the exponent's bias and also normalizes subnormal numbers.
    const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
    const std::uint32_t bits = magnitude == 0x7C00U ? 0x7F80'0000U : std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>(bits | sign);
}
/// A NaN keeps its payload, as on an H200.
constexpr float float_from_bf16(std::uint16_t code) { return std::bit_cast<float>(std::uint32_t{code} << 16); }
/// `cvt.f64.f16`: a NaN keeps sign and payload, made quiet (unlike `cvt.f32.f16`).
constexpr double double_from_f16(std::uint16_t code)
{
    if ((code & 0x7FFFU) <= 0x7C00U) {
        return double{float_from_f16(code)};
    }
    return std::bit_cast<double>((std::uint64_t{code & 0x8000U} << 48) | 0x7FF8'0000'0000'0000U |
                                 (std::uint64_t{code & 0x3FFU} << 42));
}
/// `cvt.f64.f32`: a NaN keeps sign and payload, made quiet.
constexpr double double_from_float(float value)
{
    if (value == value) {
        return double{value};
    }
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<double>((std::uint64_t{bits & 0x8000'0000U} << 32) | 0x7FF8'0000'0000'0000U |
                                 (std::uint64_t{bits & 0x7F'FFFFU} << 29));
}
/// The tf32 value that a tensor core reads from a 32-bit word: it ignores the 13 low bits (PTX ISA 9.7.15).
constexpr float float_from_tf32(std::uint32_t word) { return decode(tf32_layout, word >> 13); }

/// The value of a code of any format (for tf32 the 32-bit word). The named functions above are faster.
float decode(Format format, std::uint32_t code);
/// The code of a value in any format (for tf32 the padded 32-bit word; for ue8m0 the sign is ignored, see
/// ue8m0_from_float). NaN as in encode above. In `cvt`, every narrow format except ue8m0 requires .satfinite, so set
/// `how.satfinite` to get the results of PTX.
std::uint32_t encode(Format format, double value, const Conversion& how = {});
/// Bits of one element: 16 for f16, 32 for tf32, 4 for e2m1, 6 for e2m3, ...
int element_bits(Format format);
const char* format_name(Format format);

/// `cvt.rn.f16.f32`, the conversion of every GEMM epilogue.
constexpr std::uint16_t f16_from_float(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
    if (magnitude > 0x7F80'0000U) {
        return canonical_nan_f16;
    }
    if (magnitude >= 0x477F'F000U) {  // from 65520 on, to infinity
        return static_cast<std::uint16_t>(sign | 0x7C00U);
    }
    if (magnitude < 0x3880'0000U) {  // subnormal: an addition rounds at 2^-24
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F00'0000U));
    }
    const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x3800'0000U) >> 13));
}
/// `cvt.rn.bf16.f32`.
constexpr std::uint16_t bf16_from_float(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7FFF'FFFFU) > 0x7F80'0000U) {
        return canonical_nan_bf16;
    }
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}
constexpr std::uint16_t f16_from_float(float value, const Conversion& how)
{
    return static_cast<std::uint16_t>(encode(f16_layout, double{value}, how));
}
constexpr std::uint16_t bf16_from_float(float value, const Conversion& how)
{
    return static_cast<std::uint16_t>(encode(bf16_layout, double{value}, how));
}
/// The 32-bit word that `cvt.*.tf32.f32` writes: the 13 low bits are 0. NaN is 0x7FFFE000. Hardware's .rna adds its
/// half to the bits of a NaN, which can even give infinity; this is not modelled.
constexpr std::uint32_t tf32_from_float(float value, const Conversion& how)
{
    return static_cast<std::uint32_t>(encode(tf32_layout, double{value}, how) << 13);
}
/// `cvt.rn.satfinite.e4m3x2.f32` of one element; likewise the four below. NaN: 0x7F, or +maximum where there is none.
constexpr std::uint8_t e4m3_from_float(float value, bool relu = false)
{
    return static_cast<std::uint8_t>(encode(e4m3_layout, double{value}, {.satfinite = true, .relu = relu}));
}
constexpr std::uint8_t e5m2_from_float(float value, bool relu = false)
{
    return static_cast<std::uint8_t>(encode(e5m2_layout, double{value}, {.satfinite = true, .relu = relu}));
}
constexpr std::uint8_t e2m3_from_float(float value, bool relu = false)
{
    return static_cast<std::uint8_t>(encode(e2m3_layout, double{value}, {.satfinite = true, .relu = relu}));
}
constexpr std::uint8_t e3m2_from_float(float value, bool relu = false)
{
    return static_cast<std::uint8_t>(encode(e3m2_layout, double{value}, {.satfinite = true, .relu = relu}));
}
constexpr std::uint8_t e2m1_from_float(float value, bool relu = false)
{
    return static_cast<std::uint8_t>(encode(e2m1_layout, double{value}, {.satfinite = true, .relu = relu}));
}
/// `cvt.{rz,rp}{.satfinite}.ue8m0x2.f32` of one element: the exponent of |value| rounded down or up to a power of two.
/// NaN gives 0xFF, and so do overflow and infinity without satfinite; values below 2^-127 give 0x00.
std::uint8_t ue8m0_from_float(float value, Rounding rounding, bool satfinite);

/// `cvt.rs` of one element: adds the low `random_count` bits of `random_bits` to the top `random_count` bits below the
/// target's last place; the carry decides. Deeper bits are cut off first. The caller selects which bits of the
/// instruction's operand belong to which element. This follows the PTX text only: no available hardware has the
/// instruction.
std::uint32_t encode_stochastic(Format format, float value, std::uint32_t random_bits, int random_count, bool satfinite,
                                bool relu);

/// A double rounded once to f32; NaN becomes canonical.
float float_from_double(double value, Rounding rounding);
/// `cvt.{rn,rz,rm,rp}.f32.f64`: float_from_double, but a NaN is handled as by encode_f64.
float float_from_f64(double value, Rounding rounding);

/// Integer to floating point, one rounding: `cvt.{rn,rz,rm,rp}.{f16,bf16,f32,f64}.{u,s}{8,16,32,64}`. Returns the code.
constexpr std::uint64_t encode_integer(const Layout& layout, std::uint64_t value, Rounding rounding)
{
    return encode_exact(layout, false, value, 0, rounding);
}
constexpr std::uint64_t encode_integer(const Layout& layout, std::int64_t value, Rounding rounding)
{
    const bool negative = value < 0;
    const auto bits = static_cast<std::uint64_t>(value);
    return encode_exact(layout, negative, negative ? 0 - bits : bits, 0, rounding);
}

/// `cvt.rni`, `.rzi`, `.rmi`, `.rpi` between floating-point types of the same size. A NaN becomes canonical
/// in f32; in f64 it keeps sign and payload, made quiet.
float round_to_integral(float value, Rounding rounding);
double round_to_integral(double value, Rounding rounding);

/// Floating point to integer as `cvt.{rni,rzi,rmi,rpi}.{u,s}{8,16,32,64}.{f16,bf16,f32,f64}` (PTX ISA 9.7.9.21):
/// rounds, then clamps to the integer's range (.sat changes nothing). NaN gives 0. For a 64-bit integer or an f64
/// source (`from_f64`) it gives the integer with only its top bit set.
template <typename Integer>
Integer integer_from_double(double value, Rounding rounding, bool from_f64)
{
    using Limits = std::numeric_limits<Integer>;
    if (value != value) {
        const bool top_bit = from_f64 || sizeof(Integer) == 8;
        return top_bit ? static_cast<Integer>(std::uint64_t{1} << (8 * sizeof(Integer) - 1)) : Integer{0};
    }
    const double integral = round_to_integral(value, rounding);
    // Both bounds are exact: the lower is 0 or a power of two, the upper is the maximum plus one.
    constexpr double lower = static_cast<double>(Limits::min());
    constexpr double above = 2.0 * static_cast<double>(std::uint64_t{1} << (Limits::digits - 1));
    if (integral < lower) {
        return Limits::min();
    }
    return integral >= above ? Limits::max() : static_cast<Integer>(integral);
}

/// Decodes whole tiles element by element, vectorized. `codes` holds one element per 16-bit or 8-bit cell.
void float_from_f16(const std::uint16_t* codes, float* values, std::size_t count);
void float_from_bf16(const std::uint16_t* codes, float* values, std::size_t count);
void float_from_tf32(const std::uint32_t* words, float* values, std::size_t count);
/// 8-, 6- and 4-bit formats, one element per byte (e2m1 in the low nibble).
void float_from_bytes(Format format, const std::uint8_t* codes, float* values, std::size_t count);

}  // namespace tessera::emulator::numerics
