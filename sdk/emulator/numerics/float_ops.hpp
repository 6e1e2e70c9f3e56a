#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "formats.hpp"

/// The scalar floating-point arithmetic of PTX (PTX ISA 9.7.3 "Floating Point", 9.7.4 "Half Precision"). Each operation
/// rounds once. PTX does not specify the bits of a NaN result; these are an H200's, measured by
/// tests/emulator/hardware/scalar_probe.cu: the canonical NaN 0x7FFFFFFF or 0x7FFF for f32, f16 and bf16; for f64 see
/// propagate(). 16-bit operands and results are codes. Include this only in targets compiled with -ffp-contract=off.
/// The .rn forms are plain operations, which compilers vectorize in a loop over lanes.
namespace tessera::emulator::numerics {

/// The modifiers of an arithmetic instruction.
struct Modifiers {
    Rounding rounding = Rounding::nearest_even;
    bool ftz = false;  ///< subnormal inputs and results become zero of the same sign
    bool sat = false;  ///< clamp the result to [0, 1]; NaN becomes +0
};

/// The modifiers of min and max.
struct Selection {
    bool ftz = false;
    bool nan = false;          ///< .NaN: NaN if any input is NaN; otherwise NaN only if all are
    bool xorsign_abs = false;  ///< .xorsign.abs: of the magnitudes; the sign is the XOR of the signs
    bool abs = false;          ///< .abs, of the three-input form: compares magnitudes
};

inline float flush(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>((bits & 0x7F80'0000U) == 0 ? bits & 0x8000'0000U : bits);
}
inline float flush_if(float value, bool ftz) { return ftz ? flush(value) : value; }
constexpr std::uint16_t flush_f16(std::uint16_t code)
{
    return static_cast<std::uint16_t>((code & 0x7C00U) == 0 ? code & 0x8000U : code);
}

inline float canonical(float value) { return value == value ? value : std::bit_cast<float>(canonical_nan_f32); }
/// The f64 NaN of an operation on numbers.
inline constexpr std::uint64_t generated_nan_f64 = 0xFFF8'0000'0000'0000;
/// The first NaN among the operands, made quiet; the generated NaN if there is none.
double nan_of(double first, double second = 0.0, double third = 0.0);
/// An f64 result. If it is NaN, it is the first NaN among the operands, so callers pass them in the order in which
/// hardware looks for a NaN.
inline double propagate(double result, double first, double second = 0.0, double third = 0.0)
{
    return result == result ? result : nan_of(first, second, third);
}

template <typename Float>
Float saturate(Float value)
{
    return value >= Float{1} ? Float{1} : value > Float{0} ? value : Float{0};  // NaN fails both comparisons
}

// f32, round to nearest even, no modifiers: the hot path.
inline float add_rn(float a, float b) { return canonical(a + b); }
inline float sub_rn(float a, float b) { return canonical(a - b); }
inline float mul_rn(float a, float b) { return canonical(a * b); }
/// One instruction if the translation unit is compiled for a processor with FMA, else a call.
inline float fma_rn(float a, float b, float c) { return canonical(std::fma(a, b, c)); }
inline double add_rn(double a, double b) { return propagate(a + b, b, a); }
inline double sub_rn(double a, double b) { return propagate(a - b, b, a); }
inline double mul_rn(double a, double b) { return propagate(a * b, b, a); }
inline double fma_rn(double a, double b, double c) { return propagate(std::fma(a, b, c), b, c, a); }

// f32 with any modifiers.
float add(float a, float b, const Modifiers& how);
float sub(float a, float b, const Modifiers& how);
float mul(float a, float b, const Modifiers& how);
float fma(float a, float b, float c, const Modifiers& how);
float div(float a, float b, const Modifiers& how);
float sqrt(float a, const Modifiers& how);
float rcp(float a, const Modifiers& how);

// f64: no .ftz and no .sat.
double add(double a, double b, Rounding rounding);
double sub(double a, double b, Rounding rounding);
double mul(double a, double b, Rounding rounding);
double fma(double a, double b, double c, Rounding rounding);
double div(double a, double b, Rounding rounding);
double sqrt(double a, Rounding rounding);
double rcp(double a, Rounding rounding);

// f16 on codes; only .rn exists.
std::uint16_t add_f16(std::uint16_t a, std::uint16_t b, bool ftz = false, bool sat = false);
std::uint16_t sub_f16(std::uint16_t a, std::uint16_t b, bool ftz = false, bool sat = false);
std::uint16_t mul_f16(std::uint16_t a, std::uint16_t b, bool ftz = false, bool sat = false);
std::uint16_t fma_f16(std::uint16_t a, std::uint16_t b, std::uint16_t c, bool ftz = false, bool sat = false,
                      bool relu = false);
// bf16 on codes; only .rn exists, no .ftz, no .sat.
std::uint16_t add_bf16(std::uint16_t a, std::uint16_t b);
std::uint16_t sub_bf16(std::uint16_t a, std::uint16_t b);
std::uint16_t mul_bf16(std::uint16_t a, std::uint16_t b);
std::uint16_t fma_bf16(std::uint16_t a, std::uint16_t b, std::uint16_t c, bool relu = false);

// -0 is less than +0. `ftz` is ignored for f64.
float minimum(float a, float b, const Selection& how);
float maximum(float a, float b, const Selection& how);
float minimum(float a, float b, float c, const Selection& how);
float maximum(float a, float b, float c, const Selection& how);
double minimum(double a, double b);
double maximum(double a, double b);
std::uint16_t minimum_f16(std::uint16_t a, std::uint16_t b, const Selection& how);
std::uint16_t maximum_f16(std::uint16_t a, std::uint16_t b, const Selection& how);
std::uint16_t minimum_bf16(std::uint16_t a, std::uint16_t b, const Selection& how);
std::uint16_t maximum_bf16(std::uint16_t a, std::uint16_t b, const Selection& how);

// abs and neg of a NaN: the canonical NaN in f32, f16 and bf16; in f64 the NaN itself, made quiet, with its own sign.
inline float abs(float a, bool ftz) { return canonical(std::fabs(flush_if(a, ftz))); }
inline float neg(float a, bool ftz) { return canonical(-flush_if(a, ftz)); }
inline double abs(double a) { return propagate(std::fabs(a), a); }
inline double neg(double a) { return propagate(-a, a); }
constexpr std::uint16_t abs_f16(std::uint16_t code, bool ftz = false)
{
    const auto magnitude = static_cast<std::uint16_t>((ftz ? flush_f16(code) : code) & 0x7FFFU);
    return magnitude > 0x7C00U ? canonical_nan_f16 : magnitude;
}
constexpr std::uint16_t neg_f16(std::uint16_t code, bool ftz = false)
{
    const std::uint16_t flushed = ftz ? flush_f16(code) : code;
    return (flushed & 0x7FFFU) > 0x7C00U ? canonical_nan_f16 : static_cast<std::uint16_t>(flushed ^ 0x8000U);
}
constexpr std::uint16_t abs_bf16(std::uint16_t code)
{
    const auto magnitude = static_cast<std::uint16_t>(code & 0x7FFFU);
    return magnitude > 0x7F80U ? canonical_nan_bf16 : magnitude;
}
constexpr std::uint16_t neg_bf16(std::uint16_t code)
{
    return (code & 0x7FFFU) > 0x7F80U ? canonical_nan_bf16 : static_cast<std::uint16_t>(code ^ 0x8000U);
}

/// `copysign d, a, b`: the magnitude of b with the sign of a (PTX's order).
inline float copysign(float a, float b)
{
    const auto sign = std::bit_cast<std::uint32_t>(a) & 0x8000'0000U;
    return std::bit_cast<float>(sign | (std::bit_cast<std::uint32_t>(b) & 0x7FFF'FFFFU));
}
inline double copysign(double a, double b)
{
    const auto sign = std::bit_cast<std::uint64_t>(a) & 0x8000'0000'0000'0000U;
    return std::bit_cast<double>(sign | (std::bit_cast<std::uint64_t>(b) & 0x7FFF'FFFF'FFFF'FFFFU));
}

enum class FloatClass : std::uint8_t { finite, infinite, number, notanumber, normal, subnormal };
/// `testp`.
bool has_class(float value, FloatClass which);
bool has_class(double value, FloatClass which);

/// Applies a 16-bit operation to both halves of packed operands.
template <typename Operation, typename... Packed>
std::uint32_t each_half(Operation&& operation, Packed... packed)
{
    const std::uint32_t low = operation(static_cast<std::uint16_t>(packed)...);
    const std::uint32_t high = operation(static_cast<std::uint16_t>(packed >> 16)...);
    return low | high << 16;
}

}  // namespace tessera::emulator::numerics
