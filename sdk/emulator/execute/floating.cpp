// Floating-point arithmetic (PTX ISA 9.7.3 "Floating Point Instructions", 9.7.4 "Half Precision", 9.7.5 "Mixed
// Precision").

#include <bit>
#include <optional>
#include <span>

#include "execute/floating.hpp"
#include "execute/lanewise.hpp"
#include "numerics/float_ops.hpp"
#include "numerics/formats.hpp"

namespace tessera::emulator {

using ptx::Type;

using namespace floating;

namespace {

// --- add, sub, mul ---

struct Add {
    static constexpr bool mixed = true;
    template <typename T>
    static T nearest(T a, T b)
    {
        return numerics::add_rn(a, b);
    }
    template <typename T, typename How>
    static T rounded(T a, T b, const How& how)
    {
        return numerics::add(a, b, how);
    }
    static U16 f16(U16 a, U16 b, bool ftz, bool sat) { return numerics::add_f16(a, b, ftz, sat); }
    static U16 bf16(U16 a, U16 b) { return numerics::add_bf16(a, b); }
};
struct Sub {
    static constexpr bool mixed = true;
    template <typename T>
    static T nearest(T a, T b)
    {
        return numerics::sub_rn(a, b);
    }
    template <typename T, typename How>
    static T rounded(T a, T b, const How& how)
    {
        return numerics::sub(a, b, how);
    }
    static U16 f16(U16 a, U16 b, bool ftz, bool sat) { return numerics::sub_f16(a, b, ftz, sat); }
    static U16 bf16(U16 a, U16 b) { return numerics::sub_bf16(a, b); }
};
struct Mul {
    static constexpr bool mixed = false;
    template <typename T>
    static T nearest(T a, T b)
    {
        return numerics::mul_rn(a, b);
    }
    template <typename T, typename How>
    static T rounded(T a, T b, const How& how)
    {
        return numerics::mul(a, b, how);
    }
    static U16 f16(U16 a, U16 b, bool ftz, bool sat) { return numerics::mul_f16(a, b, ftz, sat); }
    static U16 bf16(U16 a, U16 b) { return numerics::mul_bf16(a, b); }
};

/// For sums and products of two f16 values, rounding to f32 and then to f16 equals rounding once: f32 has more than
/// twice as many bits plus two.
template <typename Op>
U16 f16_by_f32(U16 a, U16 b)
{
    return numerics::f16_from_float(Op::nearest(numerics::float_from_f16(a), numerics::float_from_f16(b)));
}

template <typename Op>
float nearest_flushed(float a, float b)
{
    return numerics::flush(Op::nearest(numerics::flush(a), numerics::flush(b)));
}

template <typename Op>
void decode_f32(Decoder& decoder, Operation& operation, const Taken& taken)
{
    decode_rows(decoder, operation, Type::f32, {Type::f32, Type::f32});
    if (taken.nearest() && !taken.sat) {
        operation.execute =
            taken.ftz ? lanewise<float, float, float>([](float a, float b) { return nearest_flushed<Op>(a, b); })
                      : lanewise<float, float, float>([](float a, float b) { return Op::nearest(a, b); });
        return;
    }
    decoder.emplace_payload<FloatPayload>().how = taken.modifiers();
    operation.execute = lanewise_with<FloatPayload, float, float, float>(
        [](const FloatPayload& p, float a, float b) { return Op::rounded(a, b, p.how); });
}

/// add.f32.bf16 d, a, c: converts a, which is exact, and computes in f32.
template <typename Op>
void decode_mixed(Decoder& decoder, Operation& operation, const Taken& taken, Type narrow)
{
    if (narrow != Type::f16 && narrow != Type::bf16) {
        fail_type(decoder, narrow);
    }
    expect_capability(decoder, 100, "f32 arithmetic with an operand of type " + dotted(narrow));
    refuse(decoder, taken.ftz, "ftz", narrow);
    decode_rows(decoder, operation, Type::f32, {narrow, Type::f32});
    decoder.emplace_payload<FloatPayload>().how = taken.modifiers();
    operation.execute = narrow == Type::f16
                            ? lanewise_with<FloatPayload, float, U16, float>([](const FloatPayload& p, U16 a, float c) {
                                  return Op::rounded(numerics::float_from_f16(a), c, p.how);
                              })
                            : lanewise_with<FloatPayload, float, U16, float>([](const FloatPayload& p, U16 a, float c) {
                                  return Op::rounded(numerics::float_from_bf16(a), c, p.how);
                              });
}

template <typename Op>
void decode_f32x2(Decoder& decoder, Operation& operation, const Taken& taken)
{
    expect_capability(decoder, 100, ".f32x2");
    refuse(decoder, taken.sat, "sat", Type::f32x2);
    decode_rows(decoder, operation, Type::b64, {Type::b64, Type::b64});
    if (taken.nearest() && !taken.ftz) {
        // The row is 64 consecutive floats, so the pairs need no unpacking.
        operation.execute = lanewise<U64, U64, U64>(
            [](U64 a, U64 b) { return each_float([](float x, float y) { return Op::nearest(x, y); }, a, b); });
        return;
    }
    decoder.emplace_payload<FloatPayload>().how = taken.modifiers();
    operation.execute = lanewise_with<FloatPayload, U64, U64, U64>([](const FloatPayload& p, U64 a, U64 b) {
        return each_float([&p](float x, float y) { return Op::rounded(x, y, p.how); }, a, b);
    });
}

template <typename Op>
void decode_binary(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::floating;
    const Taken taken = take_modifiers(decoder);
    const Type type = decoder.require_type();
    if (type == Type::f32) {
        if (const std::optional<Type> narrow = Op::mixed ? decoder.take_type() : std::nullopt) {
            decode_mixed<Op>(decoder, operation, taken, *narrow);
        } else {
            decode_f32<Op>(decoder, operation, taken);
        }
        return;
    }
    if (type == Type::f32x2) {
        return decode_f32x2<Op>(decoder, operation, taken);
    }
    if (type == Type::f64) {
        refuse(decoder, taken.ftz, "ftz", type);
        refuse(decoder, taken.sat, "sat", type);
        decode_rows(decoder, operation, type, {type, type});
        if (taken.nearest()) {
            operation.execute = lanewise<double, double, double>([](double a, double b) { return Op::nearest(a, b); });
        } else {
            decoder.emplace_payload<FloatPayload>().how = taken.modifiers();
            operation.execute = lanewise_with<FloatPayload, double, double, double>(
                [](const FloatPayload& p, double a, double b) { return Op::rounded(a, b, p.how.rounding); });
        }
        return;
    }
    if (!taken.nearest()) {
        decoder.fail("only .rn is defined for type " + dotted(type));
    }
    decode_rows(decoder, operation, type, {type, type});
    auto& payload = decoder.emplace_payload<FloatPayload>();
    payload.how = taken.modifiers();
    if (type == Type::f16 || type == Type::f16x2) {
        operation.execute =
            taken.ftz || taken.sat
                ? half_or_packed<2, FloatPayload>(
                      is_packed(type),
                      [](const FloatPayload& p, U16 a, U16 b) { return Op::f16(a, b, p.how.ftz, p.how.sat); })
                : half_or_packed<2, FloatPayload>(
                      is_packed(type), [](const FloatPayload&, U16 a, U16 b) { return f16_by_f32<Op>(a, b); });
    } else if (type == Type::bf16 || type == Type::bf16x2) {
        expect_capability(decoder, 90, "arithmetic" + dotted(type));
        refuse(decoder, taken.ftz, "ftz", type);
        refuse(decoder, taken.sat, "sat", type);
        operation.execute = half_or_packed<2, FloatPayload>(
            is_packed(type), [](const FloatPayload&, U16 a, U16 b) { return Op::bf16(a, b); });
    } else {
        fail_type(decoder, type);
    }
}

// --- fma ---

float fma_flushed(float a, float b, float c)
{
    return numerics::flush(numerics::fma_rn(numerics::flush(a), numerics::flush(b), numerics::flush(c)));
}

/// The NaN that tensor copies with NaN fill write outside of the tensor; .oob treats it as zero.
constexpr U16 out_of_bounds_nan = 0x7FFF;

template <typename F>
U16 unless_out_of_bounds(bool oob, U16 a, U16 b, U16 c, F f)
{
    if (oob && (a == out_of_bounds_nan || b == out_of_bounds_nan || c == out_of_bounds_nan)) {
        return 0;
    }
    return f();
}

void decode_fma_half(Decoder& decoder, Operation& operation, const Taken& taken, Type type)
{
    const bool bfloat = type == Type::bf16 || type == Type::bf16x2;
    if (!taken.nearest()) {
        decoder.fail("only .rn is defined for type " + dotted(type));
    }
    refuse(decoder, bfloat && taken.ftz, "ftz", type);
    refuse(decoder, bfloat && taken.sat, "sat", type);
    if (taken.sat && taken.relu) {
        decoder.fail(".sat and .relu exclude each other");
    }
    if (taken.oob && taken.ftz) {
        decoder.fail(".oob cannot be combined with .ftz");
    }
    if (bfloat || taken.relu) {
        expect_capability(decoder, 80, "fma" + dotted(type) + (taken.relu ? " with .relu" : ""));
    }
    if (taken.oob) {
        expect_capability(decoder, 90, "fma with .oob");
    }
    decode_rows(decoder, operation, type, {type, type, type});
    auto& payload = decoder.emplace_payload<FloatPayload>();
    payload.how = taken.modifiers();
    payload.relu = taken.relu;
    payload.oob = taken.oob;
    operation.execute =
        bfloat ? half_or_packed<3, FloatPayload>(is_packed(type),
                                                 [](const FloatPayload& p, U16 a, U16 b, U16 c) {
                                                     return unless_out_of_bounds(p.oob, a, b, c, [&] {
                                                         return numerics::fma_bf16(a, b, c, p.relu);
                                                     });
                                                 })
               : half_or_packed<3, FloatPayload>(is_packed(type), [](const FloatPayload& p, U16 a, U16 b, U16 c) {
                     return unless_out_of_bounds(
                         p.oob, a, b, c, [&] { return numerics::fma_f16(a, b, c, p.how.ftz, p.how.sat, p.relu); });
                 });
}

void decode_fma_mixed(Decoder& decoder, Operation& operation, const Taken& taken, Type narrow)
{
    if (narrow != Type::f16 && narrow != Type::bf16) {
        fail_type(decoder, narrow);
    }
    expect_capability(decoder, 100, "f32 arithmetic with operands of type " + dotted(narrow));
    refuse(decoder, taken.ftz, "ftz", narrow);
    decode_rows(decoder, operation, Type::f32, {narrow, narrow, Type::f32});
    decoder.emplace_payload<FloatPayload>().how = taken.modifiers();
    operation.execute =
        narrow == Type::f16
            ? lanewise_with<FloatPayload, float, U16, U16, float>([](const FloatPayload& p, U16 a, U16 b, float c) {
                  return numerics::fma(numerics::float_from_f16(a), numerics::float_from_f16(b), c, p.how);
              })
            : lanewise_with<FloatPayload, float, U16, U16, float>([](const FloatPayload& p, U16 a, U16 b, float c) {
                  return numerics::fma(numerics::float_from_bf16(a), numerics::float_from_bf16(b), c, p.how);
              });
}

void decode_fma(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::floating;
    Taken taken = take_modifiers(decoder);
    taken.relu = decoder.take("relu");
    taken.oob = decoder.take("oob");
    const Type type = decoder.require_type();
    if (!taken.rounding) {
        decoder.fail("needs a rounding mode: .rn");
    }
    if (type == Type::f16 || type == Type::f16x2 || type == Type::bf16 || type == Type::bf16x2) {
        return decode_fma_half(decoder, operation, taken, type);
    }
    refuse(decoder, taken.relu, "relu", type);
    refuse(decoder, taken.oob, "oob", type);
    if (type == Type::f32) {
        if (const std::optional<Type> narrow = decoder.take_type()) {
            return decode_fma_mixed(decoder, operation, taken, *narrow);
        }
        decode_rows(decoder, operation, type, {type, type, type});
        if (taken.nearest() && !taken.sat) {
            operation.execute = taken.ftz ? lanewise<float, float, float, float>(
                                                [](float a, float b, float c) { return fma_flushed(a, b, c); })
                                          : lanewise<float, float, float, float>(
                                                [](float a, float b, float c) { return numerics::fma_rn(a, b, c); });
            return;
        }
        decoder.emplace_payload<FloatPayload>().how = taken.modifiers();
        operation.execute = lanewise_with<FloatPayload, float, float, float, float>(
            [](const FloatPayload& p, float a, float b, float c) { return numerics::fma(a, b, c, p.how); });
        return;
    }
    refuse(decoder, taken.sat, "sat", type);
    if (type == Type::f32x2) {
        expect_capability(decoder, 100, ".f32x2");
        decode_rows(decoder, operation, Type::b64, {Type::b64, Type::b64, Type::b64});
        if (taken.nearest() && !taken.ftz) {
            operation.execute = lanewise<U64, U64, U64, U64>([](U64 a, U64 b, U64 c) {
                return each_float([](float x, float y, float z) { return numerics::fma_rn(x, y, z); }, a, b, c);
            });
            return;
        }
        decoder.emplace_payload<FloatPayload>().how = taken.modifiers();
        operation.execute =
            lanewise_with<FloatPayload, U64, U64, U64, U64>([](const FloatPayload& p, U64 a, U64 b, U64 c) {
                return each_float([&p](float x, float y, float z) { return numerics::fma(x, y, z, p.how); }, a, b, c);
            });
        return;
    }
    if (type != Type::f64) {
        fail_type(decoder, type);
    }
    refuse(decoder, taken.ftz, "ftz", type);
    decode_rows(decoder, operation, type, {type, type, type});
    if (taken.nearest()) {
        operation.execute = lanewise<double, double, double, double>(
            [](double a, double b, double c) { return numerics::fma_rn(a, b, c); });
    } else {
        decoder.emplace_payload<FloatPayload>().how = taken.modifiers();
        operation.execute = lanewise_with<FloatPayload, double, double, double, double>(
            [](const FloatPayload& p, double a, double b, double c) { return numerics::fma(a, b, c, p.how.rounding); });
    }
}

// --- abs, neg ---

template <bool negate>
void decode_sign(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::floating;
    const bool ftz = decoder.take("ftz");
    const Type type = decoder.require_type();
    decode_rows(decoder, operation, type, {type});
    switch (type) {
        case Type::f32:
            operation.execute = ftz ? lanewise<float, float>([](float a) {
                return negate ? numerics::neg(a, true) : numerics::abs(a, true);
            })
                                    : lanewise<float, float>([](float a) {
                                          return negate ? numerics::neg(a, false) : numerics::abs(a, false);
                                      });
            return;
        case Type::f64:
            refuse(decoder, ftz, "ftz", type);
            operation.execute =
                lanewise<double, double>([](double a) { return negate ? numerics::neg(a) : numerics::abs(a); });
            return;
        case Type::bf16:
        case Type::bf16x2:
            refuse(decoder, ftz, "ftz", type);
            decoder.emplace_payload<FloatPayload>();
            operation.execute = half_or_packed<1, FloatPayload>(is_packed(type), [](const FloatPayload&, U16 a) {
                return negate ? numerics::neg_bf16(a) : numerics::abs_bf16(a);
            });
            return;
        case Type::f16:
        case Type::f16x2:
            decoder.emplace_payload<FloatPayload>().how.ftz = ftz;
            operation.execute = half_or_packed<1, FloatPayload>(is_packed(type), [](const FloatPayload& p, U16 a) {
                return negate ? numerics::neg_f16(a, p.how.ftz) : numerics::abs_f16(a, p.how.ftz);
            });
            return;
        default: fail_type(decoder, type);
    }
}

// --- min, max ---

/// Without modifiers: the result is a number if one operand is, and -0 is less than +0.
template <bool maximum>
float plain_extreme(float a, float b)
{
    const bool a_wins = maximum ? a > b || (a == b && !std::signbit(a)) : a < b || (a == b && std::signbit(a));
    return numerics::canonical(a_wins || b != b ? a : b);
}

template <bool maximum>
void decode_extreme_f32(Decoder& decoder, Operation& operation, const numerics::Selection& how)
{
    const bool three = decoder.operands() == 4;
    if (three) {
        expect_capability(decoder, 100, "min and max of three values");
        if (how.xorsign_abs) {
            decoder.fail(".xorsign.abs is for two values");
        }
        decode_rows(decoder, operation, Type::f32, {Type::f32, Type::f32, Type::f32});
        decoder.emplace_payload<SelectionPayload>().how = how;
        operation.execute = lanewise_with<SelectionPayload, float, float, float, float>(
            [](const SelectionPayload& p, float a, float b, float c) {
                return maximum ? numerics::maximum(a, b, c, p.how) : numerics::minimum(a, b, c, p.how);
            });
        return;
    }
    if (how.abs) {
        decoder.fail(".abs without .xorsign is for three values");
    }
    decode_rows(decoder, operation, Type::f32, {Type::f32, Type::f32});
    if (!how.ftz && !how.nan && !how.xorsign_abs) {
        operation.execute =
            lanewise<float, float, float>([](float a, float b) { return plain_extreme<maximum>(a, b); });
        return;
    }
    decoder.emplace_payload<SelectionPayload>().how = how;
    operation.execute =
        lanewise_with<SelectionPayload, float, float, float>([](const SelectionPayload& p, float a, float b) {
            return maximum ? numerics::maximum(a, b, p.how) : numerics::minimum(a, b, p.how);
        });
}

template <bool maximum>
void decode_extreme(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::floating;
    numerics::Selection how;
    how.ftz = decoder.take("ftz");
    how.nan = decoder.take("NaN");
    const bool xorsign = decoder.take("xorsign");
    const bool magnitudes = decoder.take("abs");
    if (xorsign && !magnitudes) {
        decoder.fail(".xorsign needs .abs");
    }
    how.xorsign_abs = xorsign;
    how.abs = magnitudes && !xorsign;
    const Type type = decoder.require_type();
    if (type == Type::f32) {
        return decode_extreme_f32<maximum>(decoder, operation, how);
    }
    refuse(decoder, how.abs, "abs", type);
    decode_rows(decoder, operation, type, {type, type});
    switch (type) {
        case Type::f64:
            refuse(decoder, how.ftz, "ftz", type);
            refuse(decoder, how.nan, "NaN", type);
            refuse(decoder, how.xorsign_abs, "xorsign", type);
            operation.execute = lanewise<double, double, double>(
                [](double a, double b) { return maximum ? numerics::maximum(a, b) : numerics::minimum(a, b); });
            return;
        case Type::f16:
        case Type::f16x2:
            expect_capability(decoder, 80, "min and max" + dotted(type));
            decoder.emplace_payload<SelectionPayload>().how = how;
            operation.execute =
                half_or_packed<2, SelectionPayload>(is_packed(type), [](const SelectionPayload& p, U16 a, U16 b) {
                    return maximum ? numerics::maximum_f16(a, b, p.how) : numerics::minimum_f16(a, b, p.how);
                });
            return;
        case Type::bf16:
        case Type::bf16x2:
            expect_capability(decoder, 80, "min and max" + dotted(type));
            refuse(decoder, how.ftz, "ftz", type);
            decoder.emplace_payload<SelectionPayload>().how = how;
            operation.execute =
                half_or_packed<2, SelectionPayload>(is_packed(type), [](const SelectionPayload& p, U16 a, U16 b) {
                    return maximum ? numerics::maximum_bf16(a, b, p.how) : numerics::minimum_bf16(a, b, p.how);
                });
            return;
        default: fail_type(decoder, type);
    }
}

void decode_copysign(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::floating;
    const Type type = decoder.require_type();
    decode_rows(decoder, operation, type, {type, type});
    if (type == Type::f32) {
        operation.execute = lanewise<float, float, float>([](float a, float b) { return numerics::copysign(a, b); });
    } else if (type == Type::f64) {
        operation.execute =
            lanewise<double, double, double>([](double a, double b) { return numerics::copysign(a, b); });
    } else {
        fail_type(decoder, type);
    }
}

constexpr InstructionEntry entries[] = {
    {"fma", decode_fma},
    {"copysign", decode_copysign},
};

}  // namespace

namespace floating {

void decode_add(Decoder& decoder, Operation& operation) { decode_binary<Add>(decoder, operation); }
void decode_sub(Decoder& decoder, Operation& operation) { decode_binary<Sub>(decoder, operation); }
void decode_mul(Decoder& decoder, Operation& operation) { decode_binary<Mul>(decoder, operation); }
/// mad on floating-point numbers is fma on every emulated device.
void decode_mad(Decoder& decoder, Operation& operation)
{
    for (const std::string_view narrow : {"f16", "f16x2", "bf16", "bf16x2", "f32x2"}) {
        if (decoder.take(narrow)) {
            decoder.fail("is not defined for type ." + std::string(narrow) + ": use fma");
        }
    }
    decode_fma(decoder, operation);
}
void decode_abs(Decoder& decoder, Operation& operation) { decode_sign<false>(decoder, operation); }
void decode_neg(Decoder& decoder, Operation& operation) { decode_sign<true>(decoder, operation); }
void decode_min(Decoder& decoder, Operation& operation) { decode_extreme<false>(decoder, operation); }
void decode_max(Decoder& decoder, Operation& operation) { decode_extreme<true>(decoder, operation); }

}  // namespace floating

std::span<const InstructionEntry> floating_instructions()
{
    static const std::vector<InstructionEntry> all = join_tables({entries, function_instructions()});
    return all;
}

}  // namespace tessera::emulator
