// Division, roots and elementary functions (PTX ISA 9.7.3 "Floating Point Instructions"). The .approx forms are within
// the documented errors, but do not match the bits of one chip: numerics/approximations.hpp.

#include <optional>
#include <span>

#include "execute/floating.hpp"
#include "execute/lanewise.hpp"
#include "numerics/approximations.hpp"
#include "numerics/float_ops.hpp"

namespace tessera::emulator::floating {

namespace {

// --- div, rcp, sqrt ---

/// Rounding of an instruction that also has .approx; f32 and f64.
struct Precision {
    std::optional<Rounding> rounding;
    bool approximate = false, full = false, ftz = false;
    Type type = Type::none;
};

[[nodiscard]] Precision take_precision(Decoder& decoder)
{
    Precision result;
    result.approximate = decoder.take("approx");
    result.full = decoder.take("full");
    result.rounding = take_rounding(decoder);
    result.ftz = decoder.take("ftz");
    result.type = decoder.require_type();
    if (result.approximate + result.full + result.rounding.has_value() != 1) {
        decoder.fail("needs one of .approx and a rounding mode");
    }
    if (result.type != Type::f32 && result.type != Type::f64) {
        fail_type(decoder, result.type);
    }
    return result;
}

void emplace_rounding(Decoder& decoder, const Precision& precision)
{
    decoder.emplace_payload<FloatPayload>().how = {*precision.rounding, precision.ftz, false};
}

void decode_division(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::floating;
    const Precision precision = take_precision(decoder);
    const Type type = precision.type;
    decode_rows(decoder, operation, type, {type, type});
    if (type == Type::f64) {
        if (!precision.rounding) {
            decoder.fail("div.f64 needs a rounding mode");
        }
        refuse(decoder, precision.ftz, "ftz", type);
        emplace_rounding(decoder, precision);
        operation.execute = lanewise_with<FloatPayload, double, double, double>(
            [](const FloatPayload& p, double a, double b) { return numerics::div(a, b, p.how.rounding); });
    } else if (precision.rounding) {
        emplace_rounding(decoder, precision);
        operation.execute = lanewise_with<FloatPayload, float, float, float>(
            [](const FloatPayload& p, float a, float b) { return numerics::div(a, b, p.how); });
    } else {
        decoder.emplace_payload<FloatPayload>().how.ftz = precision.ftz;
        operation.execute =
            precision.full
                ? lanewise_with<FloatPayload, float, float, float>(
                      [](const FloatPayload& p, float a, float b) { return numerics::div_full(a, b, p.how.ftz); })
                : lanewise_with<FloatPayload, float, float, float>(
                      [](const FloatPayload& p, float a, float b) { return numerics::div_approx(a, b, p.how.ftz); });
    }
}

void decode_rcp(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::floating;
    const Precision precision = take_precision(decoder);
    const Type type = precision.type;
    if (precision.full) {
        decoder.fail(".full is for div");
    }
    decode_rows(decoder, operation, type, {type});
    if (type == Type::f64 && precision.approximate) {
        if (!precision.ftz) {
            decoder.fail("rcp.approx.f64 needs .ftz");
        }
        operation.execute = lanewise<double, double>([](double a) { return numerics::rcp_approx_ftz(a); });
    } else if (type == Type::f64) {
        refuse(decoder, precision.ftz, "ftz", type);
        emplace_rounding(decoder, precision);
        operation.execute = lanewise_with<FloatPayload, double, double>(
            [](const FloatPayload& p, double a) { return numerics::rcp(a, p.how.rounding); });
    } else if (precision.approximate) {
        decoder.emplace_payload<FloatPayload>().how.ftz = precision.ftz;
        operation.execute = lanewise_with<FloatPayload, float, float>(
            [](const FloatPayload& p, float a) { return numerics::rcp_approx(a, p.how.ftz); });
    } else {
        emplace_rounding(decoder, precision);
        operation.execute = lanewise_with<FloatPayload, float, float>(
            [](const FloatPayload& p, float a) { return numerics::rcp(a, p.how); });
    }
}

void decode_sqrt(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::floating;
    const Precision precision = take_precision(decoder);
    const Type type = precision.type;
    if (precision.full) {
        decoder.fail(".full is for div");
    }
    decode_rows(decoder, operation, type, {type});
    if (type == Type::f64) {
        if (precision.approximate) {
            decoder.fail("sqrt.f64 needs a rounding mode");
        }
        refuse(decoder, precision.ftz, "ftz", type);
        emplace_rounding(decoder, precision);
        operation.execute = lanewise_with<FloatPayload, double, double>(
            [](const FloatPayload& p, double a) { return numerics::sqrt(a, p.how.rounding); });
    } else if (precision.approximate) {
        decoder.emplace_payload<FloatPayload>().how.ftz = precision.ftz;
        operation.execute = lanewise_with<FloatPayload, float, float>(
            [](const FloatPayload& p, float a) { return numerics::sqrt_approx(a, p.how.ftz); });
    } else {
        emplace_rounding(decoder, precision);
        operation.execute = lanewise_with<FloatPayload, float, float>(
            [](const FloatPayload& p, float a) { return numerics::sqrt(a, p.how); });
    }
}

void decode_rsqrt(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::floating;
    const Precision precision = take_precision(decoder);
    if (!precision.approximate) {
        decoder.fail("needs .approx");
    }
    decode_rows(decoder, operation, precision.type, {precision.type});
    if (precision.type == Type::f64) {
        operation.execute = precision.ftz
                                ? lanewise<double, double>([](double a) { return numerics::rsqrt_approx_ftz(a); })
                                : lanewise<double, double>([](double a) { return numerics::rsqrt_approx(a); });
        return;
    }
    decoder.emplace_payload<FloatPayload>().how.ftz = precision.ftz;
    operation.execute = lanewise_with<FloatPayload, float, float>(
        [](const FloatPayload& p, float a) { return numerics::rsqrt_approx(a, p.how.ftz); });
}

// --- sin, cos, lg2, ex2, tanh ---

void require_approx(Decoder& decoder)
{
    if (!decoder.take("approx")) {
        decoder.fail("needs .approx");
    }
}

/// Functions that exist only for f32.
template <float (*function)(float, bool)>
void decode_f32_function(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::floating;
    require_approx(decoder);
    const bool ftz = decoder.take("ftz");
    const Type type = decoder.require_type();
    if (type != Type::f32) {
        fail_type(decoder, type);
    }
    decode_rows(decoder, operation, type, {type});
    decoder.emplace_payload<FloatPayload>().how.ftz = ftz;
    operation.execute = lanewise_with<FloatPayload, float, float>(
        [](const FloatPayload& p, float a) { return function(a, p.how.ftz); });
}

/// ex2 and tanh: also f16 and bf16.
template <bool exponential>
void decode_half_function(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::floating;
    require_approx(decoder);
    const bool ftz = decoder.take("ftz");
    const Type type = decoder.require_type();
    const bool bfloat = type == Type::bf16 || type == Type::bf16x2;
    if (exponential && bfloat && !ftz) {
        decoder.fail("ex2" + dotted(type) + " needs .ftz");
    }
    refuse(decoder, ftz && !(exponential && (bfloat || type == Type::f32)), "ftz", type);
    decode_rows(decoder, operation, type, {type});
    auto& payload = decoder.emplace_payload<FloatPayload>();
    payload.how.ftz = ftz;
    switch (type) {
        case Type::f32:
            operation.execute = lanewise_with<FloatPayload, float, float>([](const FloatPayload& p, float a) {
                return exponential ? numerics::ex2_approx(a, p.how.ftz) : numerics::tanh_approx(a);
            });
            return;
        case Type::f16:
        case Type::f16x2:
            operation.execute = half_or_packed<1, FloatPayload>(is_packed(type), [](const FloatPayload& p, U16 a) {
                return exponential ? numerics::ex2_approx_f16(a, p.how.ftz) : numerics::tanh_approx_f16(a);
            });
            return;
        case Type::bf16:
        case Type::bf16x2:
            expect_capability(decoder, 90, decoder.instruction().opcode + dotted(type));
            operation.execute = half_or_packed<1, FloatPayload>(is_packed(type), [](const FloatPayload&, U16 a) {
                return exponential ? numerics::ex2_approx_bf16(a) : numerics::tanh_approx_bf16(a);
            });
            return;
        default: fail_type(decoder, type);
    }
}

constexpr InstructionEntry entries[] = {
    {"rcp", decode_rcp},
    {"sqrt", decode_sqrt},
    {"rsqrt", decode_rsqrt},
    {"sin", decode_f32_function<numerics::sin_approx>},
    {"cos", decode_f32_function<numerics::cos_approx>},
    {"lg2", decode_f32_function<numerics::lg2_approx>},
    {"ex2", decode_half_function<true>},
    {"tanh", decode_half_function<false>},
};

}  // namespace

void decode_div(Decoder& decoder, Operation& operation) { decode_division(decoder, operation); }

std::span<const InstructionEntry> function_instructions() { return entries; }

}  // namespace tessera::emulator::floating
