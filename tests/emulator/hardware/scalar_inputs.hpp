#pragma once

// The scalar instructions that the hardware was probed with, and their operands.

#include "probe_inputs.hpp"

namespace tessera::probe {

struct Operands {
    std::uint64_t a, b, c;
};

// X(instruction, operands, D register type, bits, asm constraint, source register type, bits, constraint)
#define TESSERA_F32(X, NAME, OPERANDS) X(NAME, OPERANDS, "f32", "32", "r", "f32", "32", "r")
#define TESSERA_F64(X, NAME, OPERANDS) X(NAME, OPERANDS, "f64", "64", "l", "f64", "64", "l")
#define TESSERA_B16(X, NAME, OPERANDS) X(NAME, OPERANDS, "b16", "16", "h", "b16", "16", "h")
#define TESSERA_B32(X, NAME, OPERANDS) X(NAME, OPERANDS, "b32", "32", "r", "b32", "32", "r")
#define TESSERA_MODES(OF, X, STEM, TAIL, OPERANDS) \
    OF(X, STEM ".rn" TAIL, OPERANDS)               \
    OF(X, STEM ".rz" TAIL, OPERANDS)               \
    OF(X, STEM ".rm" TAIL, OPERANDS)               \
    OF(X, STEM ".rp" TAIL, OPERANDS)
#define TESSERA_INTEGER_MODES(X, TAIL, DT, DW, DC, ST, SW, SC) \
    X("cvt.rni" TAIL, "d, a", DT, DW, DC, ST, SW, SC)          \
    X("cvt.rzi" TAIL, "d, a", DT, DW, DC, ST, SW, SC)          \
    X("cvt.rmi" TAIL, "d, a", DT, DW, DC, ST, SW, SC)          \
    X("cvt.rpi" TAIL, "d, a", DT, DW, DC, ST, SW, SC)
#define TESSERA_CVT_MODES(X, TAIL, DT, DW, DC, ST, SW, SC) \
    X("cvt.rn" TAIL, "d, a", DT, DW, DC, ST, SW, SC)       \
    X("cvt.rz" TAIL, "d, a", DT, DW, DC, ST, SW, SC)       \
    X("cvt.rm" TAIL, "d, a", DT, DW, DC, ST, SW, SC)       \
    X("cvt.rp" TAIL, "d, a", DT, DW, DC, ST, SW, SC)

#define TESSERA_SCALAR_CASES(X)                                                          \
    TESSERA_MODES(TESSERA_F32, X, "add", ".f32", "d, a, b")                              \
    TESSERA_MODES(TESSERA_F32, X, "sub", ".f32", "d, a, b")                              \
    TESSERA_MODES(TESSERA_F32, X, "mul", ".f32", "d, a, b")                              \
    TESSERA_MODES(TESSERA_F32, X, "fma", ".f32", "d, a, b, c")                           \
    TESSERA_MODES(TESSERA_F32, X, "div", ".f32", "d, a, b")                              \
    TESSERA_MODES(TESSERA_F32, X, "sqrt", ".f32", "d, a")                                \
    TESSERA_MODES(TESSERA_F32, X, "rcp", ".f32", "d, a")                                 \
    TESSERA_MODES(TESSERA_F32, X, "add", ".ftz.f32", "d, a, b")                          \
    TESSERA_MODES(TESSERA_F32, X, "mul", ".ftz.f32", "d, a, b")                          \
    TESSERA_MODES(TESSERA_F32, X, "fma", ".ftz.f32", "d, a, b, c")                       \
    TESSERA_MODES(TESSERA_F32, X, "div", ".ftz.f32", "d, a, b")                          \
    TESSERA_MODES(TESSERA_F32, X, "sqrt", ".ftz.f32", "d, a")                            \
    TESSERA_MODES(TESSERA_F32, X, "rcp", ".ftz.f32", "d, a")                             \
    TESSERA_F32(X, "add.rn.sat.f32", "d, a, b")                                          \
    TESSERA_F32(X, "mul.rn.ftz.sat.f32", "d, a, b")                                      \
    TESSERA_F32(X, "fma.rz.sat.f32", "d, a, b, c")                                       \
    TESSERA_F32(X, "min.f32", "d, a, b")                                                 \
    TESSERA_F32(X, "max.f32", "d, a, b")                                                 \
    TESSERA_F32(X, "min.ftz.f32", "d, a, b")                                             \
    TESSERA_F32(X, "max.NaN.f32", "d, a, b")                                             \
    TESSERA_F32(X, "min.xorsign.abs.f32", "d, a, b")                                     \
    TESSERA_F32(X, "max.ftz.NaN.xorsign.abs.f32", "d, a, b")                             \
    TESSERA_F32(X, "abs.f32", "d, a")                                                    \
    TESSERA_F32(X, "abs.ftz.f32", "d, a")                                                \
    TESSERA_F32(X, "neg.f32", "d, a")                                                    \
    TESSERA_F32(X, "neg.ftz.f32", "d, a")                                                \
    TESSERA_F32(X, "copysign.f32", "d, a, b")                                            \
    TESSERA_MODES(TESSERA_F64, X, "add", ".f64", "d, a, b")                              \
    TESSERA_MODES(TESSERA_F64, X, "mul", ".f64", "d, a, b")                              \
    TESSERA_MODES(TESSERA_F64, X, "fma", ".f64", "d, a, b, c")                           \
    TESSERA_MODES(TESSERA_F64, X, "div", ".f64", "d, a, b")                              \
    TESSERA_MODES(TESSERA_F64, X, "sqrt", ".f64", "d, a")                                \
    TESSERA_MODES(TESSERA_F64, X, "rcp", ".f64", "d, a")                                 \
    TESSERA_F64(X, "min.f64", "d, a, b")                                                 \
    TESSERA_F64(X, "max.f64", "d, a, b")                                                 \
    TESSERA_B16(X, "add.rn.f16", "d, a, b")                                              \
    TESSERA_B16(X, "sub.rn.f16", "d, a, b")                                              \
    TESSERA_B16(X, "mul.rn.f16", "d, a, b")                                              \
    TESSERA_B16(X, "fma.rn.f16", "d, a, b, c")                                           \
    TESSERA_B16(X, "add.rn.ftz.f16", "d, a, b")                                          \
    TESSERA_B16(X, "mul.rn.ftz.f16", "d, a, b")                                          \
    TESSERA_B16(X, "fma.rn.ftz.f16", "d, a, b, c")                                       \
    TESSERA_B16(X, "add.rn.sat.f16", "d, a, b")                                          \
    TESSERA_B16(X, "fma.rn.sat.f16", "d, a, b, c")                                       \
    TESSERA_B16(X, "fma.rn.relu.f16", "d, a, b, c")                                      \
    TESSERA_B16(X, "min.f16", "d, a, b")                                                 \
    TESSERA_B16(X, "max.f16", "d, a, b")                                                 \
    TESSERA_B16(X, "max.ftz.NaN.f16", "d, a, b")                                         \
    TESSERA_B16(X, "min.xorsign.abs.f16", "d, a, b")                                     \
    TESSERA_B16(X, "max.xorsign.abs.bf16", "d, a, b")                                    \
    TESSERA_B16(X, "abs.bf16", "d, a")                                                   \
    TESSERA_B16(X, "neg.bf16", "d, a")                                                   \
    TESSERA_B16(X, "abs.ftz.f16", "d, a")                                                \
    TESSERA_B16(X, "neg.ftz.f16", "d, a")                                                \
    TESSERA_MODES(TESSERA_F64, X, "sub", ".f64", "d, a, b")                              \
    TESSERA_F64(X, "abs.f64", "d, a")                                                    \
    TESSERA_F64(X, "neg.f64", "d, a")                                                    \
    TESSERA_F64(X, "copysign.f64", "d, a, b")                                            \
    TESSERA_B32(X, "abs.f16x2", "d, a")                                                  \
    TESSERA_B32(X, "neg.bf16x2", "d, a")                                                 \
    TESSERA_B32(X, "add.rn.ftz.f16x2", "d, a, b")                                        \
    TESSERA_B32(X, "mul.rn.sat.f16x2", "d, a, b")                                        \
    TESSERA_B32(X, "fma.rn.relu.bf16x2", "d, a, b, c")                                   \
    TESSERA_B32(X, "min.NaN.xorsign.abs.f16x2", "d, a, b")                               \
    X("cvt.f64.bf16", "d, a", "f64", "64", "l", "b16", "16", "h")                        \
    X("cvt.rn.f16.bf16", "d, a", "b16", "16", "h", "b16", "16", "h")                     \
    X("cvt.sat.f64.f64", "d, a", "f64", "64", "l", "f64", "64", "l")                     \
    X("cvt.rn.sat.f32.f64", "d, a", "f32", "32", "r", "f64", "64", "l")                  \
    X("cvt.rn.relu.f16.f32", "d, a", "b16", "16", "h", "f32", "32", "r")                 \
    X("cvt.rni.ftz.f32.f32", "d, a", "f32", "32", "r", "f32", "32", "r")                 \
    X("cvt.rpi.sat.f32.f32", "d, a", "f32", "32", "r", "f32", "32", "r")                 \
    X("cvt.rzi.s16.bf16", "d, a", "b16", "16", "h", "b16", "16", "h")                    \
    TESSERA_B16(X, "abs.f16", "d, a")                                                    \
    TESSERA_B16(X, "neg.f16", "d, a")                                                    \
    TESSERA_B16(X, "add.rn.bf16", "d, a, b")                                             \
    TESSERA_B16(X, "sub.rn.bf16", "d, a, b")                                             \
    TESSERA_B16(X, "mul.rn.bf16", "d, a, b")                                             \
    TESSERA_B16(X, "fma.rn.bf16", "d, a, b, c")                                          \
    TESSERA_B16(X, "fma.rn.relu.bf16", "d, a, b, c")                                     \
    TESSERA_B16(X, "min.bf16", "d, a, b")                                                \
    TESSERA_B16(X, "max.NaN.bf16", "d, a, b")                                            \
    TESSERA_B32(X, "fma.rn.f16x2", "d, a, b, c")                                         \
    TESSERA_B32(X, "fma.rn.bf16x2", "d, a, b, c")                                        \
    TESSERA_CVT_MODES(X, ".f16.f32", "b16", "16", "h", "f32", "32", "r")                 \
    TESSERA_CVT_MODES(X, ".ftz.f16.f32", "b16", "16", "h", "f32", "32", "r")             \
    X("cvt.rn.sat.f16.f32", "d, a", "b16", "16", "h", "f32", "32", "r")                  \
    TESSERA_CVT_MODES(X, ".f16.f64", "b16", "16", "h", "f64", "64", "l")                 \
    TESSERA_CVT_MODES(X, ".bf16.f64", "b16", "16", "h", "f64", "64", "l")                \
    TESSERA_CVT_MODES(X, ".f32.f64", "f32", "32", "r", "f64", "64", "l")                 \
    X("cvt.rn.ftz.f32.f64", "d, a", "f32", "32", "r", "f64", "64", "l")                  \
    X("cvt.rn.bf16.f32", "d, a", "b16", "16", "h", "f32", "32", "r")                     \
    X("cvt.rz.bf16.f32", "d, a", "b16", "16", "h", "f32", "32", "r")                     \
    X("cvt.rp.bf16.f32", "d, a", "b16", "16", "h", "f32", "32", "r")                     \
    X("cvt.rn.relu.bf16.f32", "d, a", "b16", "16", "h", "f32", "32", "r")                \
    X("cvt.rn.satfinite.bf16.f32", "d, a", "b16", "16", "h", "f32", "32", "r")           \
    X("cvt.rn.satfinite.f16.f32", "d, a", "b16", "16", "h", "f32", "32", "r")            \
    X("cvt.rz.relu.satfinite.f16.f32", "d, a", "b16", "16", "h", "f32", "32", "r")       \
    X("cvt.rna.tf32.f32", "d, a", "b32", "32", "r", "f32", "32", "r")                    \
    X("cvt.rna.satfinite.tf32.f32", "d, a", "b32", "32", "r", "f32", "32", "r")          \
    X("cvt.rn.tf32.f32", "d, a", "b32", "32", "r", "f32", "32", "r")                     \
    X("cvt.rz.relu.tf32.f32", "d, a", "b32", "32", "r", "f32", "32", "r")                \
    X("cvt.rn.f16x2.f32", "d, a, b", "b32", "32", "r", "f32", "32", "r")                 \
    X("cvt.rn.relu.bf16x2.f32", "d, a, b", "b32", "32", "r", "f32", "32", "r")           \
    X("cvt.rn.satfinite.e4m3x2.f32", "d, a, b", "b16", "16", "h", "f32", "32", "r")      \
    X("cvt.rn.satfinite.e5m2x2.f32", "d, a, b", "b16", "16", "h", "f32", "32", "r")      \
    X("cvt.rn.satfinite.relu.e4m3x2.f32", "d, a, b", "b16", "16", "h", "f32", "32", "r") \
    X("cvt.rn.satfinite.e4m3x2.f16x2", "d, a", "b16", "16", "h", "b32", "32", "r")       \
    X("cvt.rn.satfinite.relu.e5m2x2.f16x2", "d, a", "b16", "16", "h", "b32", "32", "r")  \
    X("cvt.rn.f16x2.e4m3x2", "d, a", "b32", "32", "r", "b16", "16", "h")                 \
    X("cvt.rn.relu.f16x2.e5m2x2", "d, a", "b32", "32", "r", "b16", "16", "h")            \
    X("cvt.f32.f16", "d, a", "f32", "32", "r", "b16", "16", "h")                         \
    X("cvt.f32.bf16", "d, a", "f32", "32", "r", "b16", "16", "h")                        \
    X("cvt.f64.f32", "d, a", "f64", "64", "l", "f32", "32", "r")                         \
    X("cvt.f64.f16", "d, a", "f64", "64", "l", "b16", "16", "h")                         \
    X("cvt.rn.bf16.f16", "d, a", "b16", "16", "h", "b16", "16", "h")                     \
    X("cvt.sat.f32.f32", "d, a", "f32", "32", "r", "f32", "32", "r")                     \
    TESSERA_INTEGER_MODES(X, ".f32.f32", "f32", "32", "r", "f32", "32", "r")             \
    TESSERA_INTEGER_MODES(X, ".f64.f64", "f64", "64", "l", "f64", "64", "l")             \
    X("cvt.rni.f16.f16", "d, a", "b16", "16", "h", "b16", "16", "h")                     \
    TESSERA_INTEGER_MODES(X, ".s32.f32", "b32", "32", "r", "f32", "32", "r")             \
    TESSERA_INTEGER_MODES(X, ".u32.f32", "b32", "32", "r", "f32", "32", "r")             \
    X("cvt.rzi.ftz.s32.f32", "d, a", "b32", "32", "r", "f32", "32", "r")                 \
    X("cvt.rpi.ftz.s32.f32", "d, a", "b32", "32", "r", "f32", "32", "r")                 \
    X("cvt.rzi.s64.f32", "d, a", "b64", "64", "l", "f32", "32", "r")                     \
    X("cvt.rzi.u64.f32", "d, a", "b64", "64", "l", "f32", "32", "r")                     \
    X("cvt.rzi.s16.f32", "d, a", "b32", "32", "r", "f32", "32", "r")                     \
    X("cvt.rzi.u16.f32", "d, a", "b32", "32", "r", "f32", "32", "r")                     \
    X("cvt.rzi.s8.f32", "d, a", "b32", "32", "r", "f32", "32", "r")                      \
    X("cvt.rni.sat.u8.f32", "d, a", "b32", "32", "r", "f32", "32", "r")                  \
    X("cvt.rni.u8.f32", "d, a", "b32", "32", "r", "f32", "32", "r")                      \
    TESSERA_INTEGER_MODES(X, ".s32.f64", "b32", "32", "r", "f64", "64", "l")             \
    X("cvt.rzi.u32.f64", "d, a", "b32", "32", "r", "f64", "64", "l")                     \
    X("cvt.rzi.s64.f64", "d, a", "b64", "64", "l", "f64", "64", "l")                     \
    X("cvt.rni.u64.f64", "d, a", "b64", "64", "l", "f64", "64", "l")                     \
    X("cvt.rzi.s16.f64", "d, a", "b32", "32", "r", "f64", "64", "l")                     \
    X("cvt.rzi.u8.f64", "d, a", "b32", "32", "r", "f64", "64", "l")                      \
    X("cvt.rzi.s32.f16", "d, a", "b32", "32", "r", "b16", "16", "h")                     \
    X("cvt.rni.u16.f16", "d, a", "b16", "16", "h", "b16", "16", "h")                     \
    X("cvt.rzi.s64.f16", "d, a", "b64", "64", "l", "b16", "16", "h")                     \
    X("cvt.rzi.s8.f16", "d, a", "b32", "32", "r", "b16", "16", "h")                      \
    X("cvt.rzi.s32.bf16", "d, a", "b32", "32", "r", "b16", "16", "h")                    \
    X("cvt.rzi.u64.bf16", "d, a", "b64", "64", "l", "b16", "16", "h")                    \
    TESSERA_CVT_MODES(X, ".f32.s32", "f32", "32", "r", "b32", "32", "r")                 \
    TESSERA_CVT_MODES(X, ".f32.u32", "f32", "32", "r", "b32", "32", "r")                 \
    TESSERA_CVT_MODES(X, ".f32.s64", "f32", "32", "r", "b64", "64", "l")                 \
    TESSERA_CVT_MODES(X, ".f32.u64", "f32", "32", "r", "b64", "64", "l")                 \
    TESSERA_CVT_MODES(X, ".f64.s64", "f64", "64", "l", "b64", "64", "l")                 \
    TESSERA_CVT_MODES(X, ".f64.u64", "f64", "64", "l", "b64", "64", "l")                 \
    TESSERA_CVT_MODES(X, ".f16.s32", "b16", "16", "h", "b32", "32", "r")                 \
    TESSERA_CVT_MODES(X, ".f16.u64", "b16", "16", "h", "b64", "64", "l")                 \
    X("cvt.rn.bf16.s32", "d, a", "b16", "16", "h", "b32", "32", "r")                     \
    X("cvt.rz.bf16.u64", "d, a", "b16", "16", "h", "b64", "64", "l")                     \
    X("cvt.rn.f16.s16", "d, a", "b16", "16", "h", "b16", "16", "h")

// The approximations: the emulator stays within the ISA's error bounds and does not copy the bits. The probe's results
// show how far the two are apart.
#define TESSERA_APPROXIMATE_CASES(X)               \
    TESSERA_F32(X, "rcp.approx.f32", "d, a")       \
    TESSERA_F32(X, "rcp.approx.ftz.f32", "d, a")   \
    TESSERA_F32(X, "sqrt.approx.f32", "d, a")      \
    TESSERA_F32(X, "rsqrt.approx.f32", "d, a")     \
    TESSERA_F32(X, "rsqrt.approx.ftz.f32", "d, a") \
    TESSERA_F32(X, "sin.approx.f32", "d, a")       \
    TESSERA_F32(X, "cos.approx.ftz.f32", "d, a")   \
    TESSERA_F32(X, "lg2.approx.f32", "d, a")       \
    TESSERA_F32(X, "ex2.approx.f32", "d, a")       \
    TESSERA_F32(X, "ex2.approx.ftz.f32", "d, a")   \
    TESSERA_F32(X, "tanh.approx.f32", "d, a")      \
    TESSERA_F32(X, "div.approx.f32", "d, a, b")    \
    TESSERA_F32(X, "div.full.f32", "d, a, b")      \
    TESSERA_F64(X, "rcp.approx.ftz.f64", "d, a")   \
    TESSERA_F64(X, "rsqrt.approx.ftz.f64", "d, a") \
    TESSERA_F64(X, "rsqrt.approx.f64", "d, a")     \
    TESSERA_B16(X, "ex2.approx.f16", "d, a")       \
    TESSERA_B16(X, "tanh.approx.f16", "d, a")      \
    TESSERA_B16(X, "ex2.approx.ftz.bf16", "d, a")  \
    TESSERA_B16(X, "tanh.approx.bf16", "d, a")

struct ScalarCase {
    const char* name;
    int result_bits;
    int source_bits;
    bool source_is_integer;
};

constexpr int width_of(const char* digits)
{
    return digits[1] == '\0' ? digits[0] - '0' : 10 * (digits[0] - '0') + digits[1] - '0';
}

/// The type after the last dot of an instruction's name.
inline std::string_view source_type(std::string_view name) { return name.substr(name.rfind('.') + 1); }

#define TESSERA_SCALAR_ROW(NAME, OPERANDS, DT, DW, DC, ST, SW, SC) \
    {NAME, width_of(DW), width_of(SW), ST[0] == 'b' && NAME[0] == 'c'},
inline constexpr ScalarCase scalar_cases[] = {TESSERA_SCALAR_CASES(TESSERA_SCALAR_ROW)
                                                  TESSERA_APPROXIMATE_CASES(TESSERA_SCALAR_ROW)};

inline constexpr int scalar_count = 4096;

/// One operand: random bits, similar numbers, subnormal numbers, and special values.
inline std::uint64_t scalar_operand(Generator& random, std::string_view type)
{
    const bool packed_f16 = type == "f16x2";
    const bool packed_bf16 = type == "bf16x2";
    if (packed_f16 || packed_bf16) {
        const std::uint64_t low = scalar_operand(random, packed_f16 ? "f16" : "bf16");
        return low | scalar_operand(random, packed_f16 ? "f16" : "bf16") << 16;
    }
    if (type == "e4m3x2" || type == "e5m2x2") {
        return random.next() & 0xFFFF;
    }
    if (type[0] == 's' || type[0] == 'u') {
        const int width = type == "s16" ? 16 : type.substr(1) == "32" ? 32 : 64;
        // Any number of significant bits, and ties of narrower formats.
        std::uint64_t value = random.next() >> random.below(static_cast<std::uint32_t>(64));
        if (random.one_in(4)) {
            value = (value | 1) << random.below(40);
        }
        if (random.one_in(2)) {
            value = 0 - value;
        }
        return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
    }
    const Bits& bits = type == "f64" ? bits_f64 : type == "f16" ? bits_f16 : type == "bf16" ? bits_bf16 : bits_f32;
    const std::uint64_t top = (std::uint64_t{1} << bits.exponent) - 1;
    switch (random.below(8)) {
        case 0: {  // special values
            const std::uint64_t draw = random.next();
            const std::uint64_t one = std::uint64_t{1} << bits.mantissa;
            const std::uint64_t values[] = {0,
                                            1,
                                            one - 1,
                                            one,
                                            static_cast<std::uint64_t>(bits.bias) << bits.mantissa,
                                            (top << bits.mantissa) - 1,
                                            top << bits.mantissa,
                                            (top << bits.mantissa) | 1,
                                            (top << bits.mantissa) | (one >> 1),
                                            (top << bits.mantissa) | (one - 1)};
            return values[(draw >> 8) % 10] | (draw & 1U) << (bits.width() - 1);
        }
        case 1: {                                                                  // subnormal
            const std::uint64_t mantissa = random.next() >> (64 - bits.mantissa);  // first: the order of draws is fixed
            return detail::assemble(bits, random.below(2), 0, mantissa);
        }
        case 2:  // the product is near the smallest normal number
            return detail::number(random, bits, -bits.bias / 2, 1);
        case 3:  // near the smallest normal number
            return detail::number(random, bits, 1 - bits.bias + 3, 4);
        case 4:  // near integers and ties of integers
            return detail::number(random, bits, bits.mantissa / 2, bits.mantissa / 2) &
                   ~((std::uint64_t{1} << (bits.mantissa / 2)) - 1);
        case 5: return detail::number(random, bits, 0, bits.exponent == 5 ? 10 : 33);
        case 6: return detail::number(random, bits, 0, 2);
        default: break;
    }
    return random.next() >> (64 - bits.width());
}

/// The same operands in every run. A third of the time b or c is near -a*b or a, so that sums cancel.
inline std::vector<Operands> scalar_operands(const ScalarCase& test)
{
    const std::string_view name(test.name);
    Generator random(fnv1a(test.name, name.size()));
    const std::string_view type = source_type(name);
    std::vector<Operands> all(scalar_count);
    for (Operands& one : all) {
        one.a = scalar_operand(random, type);
        one.b = scalar_operand(random, type);
        one.c = scalar_operand(random, type);
        if (random.one_in(4)) {
            one.b = one.a ^ (std::uint64_t{1} << (test.source_bits - 1)) ^ random.below(4);
        }
        if (random.one_in(4)) {
            one.c = one.a ^ random.below(16);
        }
        if (name.find(".rna") != name.npos && (one.a & 0x7F80'0000U) == 0x7F80'0000U) {
            one.a &= 0xFF80'0000U;  // no NaN: the result of .rna depends on its payload
        }
    }
    return all;
}

}  // namespace tessera::probe
