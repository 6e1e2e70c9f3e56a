// Executes the instructions of the scalar probe with the emulator's arithmetic, by their PTX names.

#include <bit>
#include <string>

#include "../hardware/scalar_inputs.hpp"
#include "emulated_instructions.hpp"
#include "numerics/float_ops.hpp"

namespace tessera::probe {
namespace {

using namespace emulator::numerics;

struct Instruction {
    std::string_view operation;
    std::vector<std::string_view> parts;  ///< modifiers and types

    [[nodiscard]] bool has(std::string_view part) const
    {
        for (const std::string_view one : parts) {
            if (one == part) {
                return true;
            }
        }
        return false;
    }
    [[nodiscard]] std::string_view source() const { return parts.back(); }
    /// Of a cvt.
    [[nodiscard]] std::string_view target() const { return parts[parts.size() - 2]; }
    [[nodiscard]] Rounding rounding() const
    {
        const auto either = [this](std::string_view floating, std::string_view integer) {
            return has(floating) || has(integer);
        };
        return either("rz", "rzi")   ? Rounding::toward_zero
               : either("rm", "rmi") ? Rounding::down
               : either("rp", "rpi") ? Rounding::up
               : has("rna")          ? Rounding::nearest_away
                                     : Rounding::nearest_even;
    }
    [[nodiscard]] Selection selection() const
    {
        return {.ftz = has("ftz"), .nan = has("NaN"), .xorsign_abs = has("xorsign"), .abs = false};
    }
    [[nodiscard]] Conversion conversion() const { return {rounding(), has("satfinite"), has("relu"), has("sat")}; }
};

Instruction parse(std::string_view name)
{
    Instruction out;
    std::size_t start = 0;
    while (start <= name.size()) {
        const std::size_t end = std::min(name.find('.', start), name.size());
        const std::string_view part = name.substr(start, end - start);
        if (start == 0) {
            out.operation = part;
        } else {
            out.parts.push_back(part);
        }
        start = end + 1;
    }
    return out;
}

std::uint64_t arithmetic_f32(const Instruction& i, float a, float b, float c)
{
    const Modifiers how{i.rounding(), i.has("ftz"), i.has("sat")};
    const std::string_view op = i.operation;
    const float d = op == "add"        ? add(a, b, how)
                    : op == "sub"      ? sub(a, b, how)
                    : op == "mul"      ? mul(a, b, how)
                    : op == "fma"      ? fma(a, b, c, how)
                    : op == "div"      ? div(a, b, how)
                    : op == "sqrt"     ? emulator::numerics::sqrt(a, how)
                    : op == "rcp"      ? rcp(a, how)
                    : op == "min"      ? minimum(a, b, i.selection())
                    : op == "max"      ? maximum(a, b, i.selection())
                    : op == "abs"      ? abs(a, how.ftz)
                    : op == "neg"      ? neg(a, how.ftz)
                    : op == "copysign" ? emulator::numerics::copysign(a, b)
                                       : 0.0F;
    return std::bit_cast<std::uint32_t>(d);
}

std::uint64_t arithmetic_f64(const Instruction& i, double a, double b, double c)
{
    const std::string_view op = i.operation;
    const double d = op == "add"        ? add(a, b, i.rounding())
                     : op == "sub"      ? sub(a, b, i.rounding())
                     : op == "mul"      ? mul(a, b, i.rounding())
                     : op == "fma"      ? fma(a, b, c, i.rounding())
                     : op == "div"      ? div(a, b, i.rounding())
                     : op == "sqrt"     ? emulator::numerics::sqrt(a, i.rounding())
                     : op == "rcp"      ? rcp(a, i.rounding())
                     : op == "abs"      ? abs(a)
                     : op == "neg"      ? neg(a)
                     : op == "copysign" ? emulator::numerics::copysign(a, b)
                     : op == "min"      ? minimum(a, b)
                                        : maximum(a, b);
    return std::bit_cast<std::uint64_t>(d);
}

std::uint16_t arithmetic_f16(const Instruction& i, std::uint16_t a, std::uint16_t b, std::uint16_t c)
{
    const bool ftz = i.has("ftz");
    const bool sat = i.has("sat");
    const std::string_view op = i.operation;
    return op == "add"   ? add_f16(a, b, ftz, sat)
           : op == "sub" ? sub_f16(a, b, ftz, sat)
           : op == "mul" ? mul_f16(a, b, ftz, sat)
           : op == "fma" ? fma_f16(a, b, c, ftz, sat, i.has("relu"))
           : op == "min" ? minimum_f16(a, b, i.selection())
           : op == "max" ? maximum_f16(a, b, i.selection())
           : op == "abs" ? abs_f16(a, ftz)
                         : neg_f16(a, ftz);
}

std::uint16_t arithmetic_bf16(const Instruction& i, std::uint16_t a, std::uint16_t b, std::uint16_t c)
{
    const std::string_view op = i.operation;
    return op == "add"   ? add_bf16(a, b)
           : op == "sub" ? sub_bf16(a, b)
           : op == "mul" ? mul_bf16(a, b)
           : op == "fma" ? fma_bf16(a, b, c, i.has("relu"))
           : op == "min" ? minimum_bf16(a, b, i.selection())
           : op == "max" ? maximum_bf16(a, b, i.selection())
           : op == "abs" ? abs_bf16(a)
                         : neg_bf16(a);
}

double floating_source(const Instruction& i, std::uint64_t bits)
{
    const std::string_view type = i.source();
    const auto half = static_cast<std::uint16_t>(bits);
    // Hardware does not flush the source of cvt.*.ftz.f16.f32, which only .rm and .rp can show.
    const bool ftz = i.has("ftz") && i.target() != "f16";
    return type == "f64"    ? std::bit_cast<double>(bits)
           : type == "f16"  ? double_from_f16(half)
           : type == "bf16" ? double_from_float(float_from_bf16(half))
                            : double_from_float(flush_if(std::bit_cast<float>(static_cast<std::uint32_t>(bits)), ftz));
}

template <typename Integer>
std::uint64_t to_integer(const Instruction& i, double value)
{
    const Integer result = integer_from_double<Integer>(value, i.rounding(), i.source() == "f64");
    if constexpr (sizeof(Integer) < 4) {
        // The probe's register has 16 bits if the source does, but 32 for an 8-bit integer.
        const bool short_register = sizeof(Integer) == 2 && (i.source() == "f16" || i.source() == "bf16");
        return short_register ? std::uint64_t{static_cast<std::uint16_t>(result)}
                              : std::uint64_t{static_cast<std::uint32_t>(result)};
    } else {
        return static_cast<std::make_unsigned_t<Integer>>(result);
    }
}

std::uint64_t integer_to_float(const Instruction& i, std::uint64_t bits)
{
    const std::string_view to = i.target();
    const Layout& layout = to == "f16"    ? f16_layout
                           : to == "bf16" ? bf16_layout
                           : to == "f64"  ? f64_layout
                                          : f32_layout;
    const std::string_view from = i.source();
    if (from[0] == 'u') {
        return encode_integer(layout, bits, i.rounding());
    }
    const auto value = from == "s64"   ? static_cast<std::int64_t>(bits)
                       : from == "s32" ? std::int64_t{static_cast<std::int32_t>(bits)}
                                       : std::int64_t{static_cast<std::int16_t>(bits)};
    return encode_integer(layout, value, i.rounding());
}

std::uint64_t narrow(const Instruction& i, std::string_view format, double value)
{
    if (format == "e4m3x2") {
        return encode(Format::e4m3, value, i.conversion());
    }
    if (format == "e5m2x2") {
        return encode(Format::e5m2, value, i.conversion());
    }
    return encode(format == "bf16x2" ? Format::bf16 : Format::f16, value, i.conversion());
}

std::uint64_t convert_packed(const Instruction& i, const Operands& in)
{
    const std::string_view to = i.target();
    const std::string_view from = i.source();
    if (from == "e4m3x2" || from == "e5m2x2") {
        const auto widen = [&](std::uint64_t code) {
            const auto byte = static_cast<std::uint8_t>(code);
            const float value = from == "e4m3x2" ? float_from_e4m3(byte) : float_from_e5m2(byte);
            return std::uint64_t{f16_from_float(value, i.conversion())};
        };
        return widen(in.a) | widen(in.a >> 8) << 16;
    }
    const int bits = to[0] == 'e' ? 8 : 16;
    if (from == "f16x2") {
        const auto low = float_from_f16(static_cast<std::uint16_t>(in.a));
        const auto high = float_from_f16(static_cast<std::uint16_t>(in.a >> 16));
        return narrow(i, to, double{low}) | narrow(i, to, double{high}) << bits;
    }
    return narrow(i, to, floating_source(i, in.b)) | narrow(i, to, floating_source(i, in.a)) << bits;
}

std::uint64_t convert(const Instruction& i, const Operands& in)
{
    const std::string_view to = i.target();
    const std::string_view from = i.source();
    if (to.find("x2") != to.npos) {
        return convert_packed(i, in);
    }
    if (from[0] == 's' || from[0] == 'u') {
        return integer_to_float(i, in.a);
    }
    const double value = floating_source(i, in.a);
    if (to == "s8") {
        return to_integer<std::int8_t>(i, value);
    }
    if (to == "u8") {
        return to_integer<std::uint8_t>(i, value);
    }
    if (to == "s16") {
        return to_integer<std::int16_t>(i, value);
    }
    if (to == "u16") {
        return to_integer<std::uint16_t>(i, value);
    }
    if (to == "s32") {
        return to_integer<std::int32_t>(i, value);
    }
    if (to == "u32") {
        return to_integer<std::uint32_t>(i, value);
    }
    if (to == "s64") {
        return to_integer<std::int64_t>(i, value);
    }
    if (to == "u64") {
        return to_integer<std::uint64_t>(i, value);
    }
    const bool integral = i.has("rni") || i.has("rzi") || i.has("rmi") || i.has("rpi");
    if (to == "f64") {
        const double wide = integral ? round_to_integral(value, i.rounding()) : value;
        return std::bit_cast<std::uint64_t>(i.has("sat") ? saturate(wide) : wide);
    }
    if (integral) {
        float rounded = round_to_integral(static_cast<float>(value), i.rounding());
        rounded = i.has("sat") ? saturate(rounded) : rounded;
        return to == "f16"    ? f16_from_float(rounded)
               : to == "bf16" ? bf16_from_float(rounded)
                              : std::bit_cast<std::uint32_t>(rounded);
    }
    if (to == "f32" && from == "bf16") {
        return std::bit_cast<std::uint32_t>(float_from_bf16(static_cast<std::uint16_t>(in.a)));
    }
    if (to == "f32") {
        float narrowed = from == "f64" ? float_from_f64(value, i.rounding()) : float_from_double(value, i.rounding());
        narrowed = flush_if(narrowed, i.has("ftz"));
        narrowed = i.has("sat") ? saturate(narrowed) : narrowed;
        return std::bit_cast<std::uint32_t>(narrowed);
    }
    if (from == "f64") {
        return encode_f64(to == "bf16" ? bf16_layout : f16_layout, value, i.conversion());
    }
    const Format format = to == "tf32" ? Format::tf32 : to == "bf16" ? Format::bf16 : Format::f16;
    return encode(format, value, i.conversion());
}

std::uint64_t execute(const Instruction& i, const Operands& in)
{
    if (i.operation == "cvt") {
        return convert(i, in);
    }
    const std::string_view type = i.source();
    const auto word = [](std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); };
    const auto half = [](std::uint64_t bits) { return static_cast<std::uint16_t>(bits); };
    if (type == "f32") {
        return arithmetic_f32(i, word(in.a), word(in.b), word(in.c));
    }
    if (type == "f64") {
        return arithmetic_f64(i, std::bit_cast<double>(in.a), std::bit_cast<double>(in.b), std::bit_cast<double>(in.c));
    }
    const bool is_f16 = type == "f16" || type == "f16x2";
    const auto operation = [&](std::uint16_t a, std::uint16_t b, std::uint16_t c) {
        return is_f16 ? arithmetic_f16(i, a, b, c) : arithmetic_bf16(i, a, b, c);
    };
    if (type == "f16x2" || type == "bf16x2") {
        return each_half(operation, static_cast<std::uint32_t>(in.a), static_cast<std::uint32_t>(in.b),
                         static_cast<std::uint32_t>(in.c));
    }
    return operation(half(in.a), half(in.b), half(in.c));
}

}  // namespace

std::vector<std::uint64_t> emulate_scalar(std::string_view name)
{
    std::vector<std::uint64_t> results;
    for (const ScalarCase& test : scalar_cases) {
        if (name == test.name) {
            const Instruction instruction = parse(name);
            for (const Operands& operands : scalar_operands(test)) {
                results.push_back(execute(instruction, operands));
            }
        }
    }
    return results;
}

}  // namespace tessera::probe
