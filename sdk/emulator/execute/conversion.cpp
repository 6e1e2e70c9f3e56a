// cvt between single values (PTX ISA 9.7.9.21 "cvt"). Packed ones: conversion_packed.cpp.

#include "execute/conversion.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "execute/lanewise.hpp"
#include "numerics/float_ops.hpp"
#include "numerics/formats.hpp"

namespace tessera::emulator {

using conversion::Modifiers;
using conversion::refuse;
using numerics::Rounding;
using ptx::Type;

namespace {

struct ConvertPayload;

/// Converts 32 consecutive values, each of the type's own size.
using Convert = void (*)(const ConvertPayload& payload, void* destination, const void* source);

struct ConvertPayload : Payload {
    Convert convert = nullptr;
    numerics::Conversion how;
    bool flush_input = false, flush_result = false;
    unsigned source_bytes = 0, destination_bytes = 0;                    ///< of the types
    unsigned source_register_bytes = 0, destination_register_bytes = 0;  ///< of the registers, which may be wider
    bool sign_extend = false;
};

// --- registers wider than the type ---

template <typename Narrow, typename Wide>
void narrow_row(const std::byte* wide, std::byte* narrow)
{
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        Wide value;
        std::memcpy(&value, wide + lane * sizeof(Wide), sizeof(Wide));
        const auto low = static_cast<Narrow>(value);
        std::memcpy(narrow + lane * sizeof(Narrow), &low, sizeof(Narrow));
    }
}

void narrow_row(unsigned wide_bytes, unsigned narrow_bytes, const std::byte* wide, std::byte* narrow)
{
    const auto to = [&]<typename Narrow>() {
        wide_bytes == 2   ? narrow_row<Narrow, std::uint16_t>(wide, narrow)
        : wide_bytes == 4 ? narrow_row<Narrow, std::uint32_t>(wide, narrow)
                          : narrow_row<Narrow, std::uint64_t>(wide, narrow);
    };
    switch (narrow_bytes) {
        case 1: to.operator()<std::uint8_t>(); break;
        case 2: to.operator()<std::uint16_t>(); break;
        default: to.operator()<std::uint32_t>(); break;
    }
}

/// The lane's value sign- or zero-extended to the register.
[[nodiscard]] std::uint64_t widened(const std::byte* values, unsigned bytes, bool sign_extend, unsigned lane)
{
    std::uint64_t value = 0;
    std::memcpy(&value, values + lane * bytes, bytes);
    if (sign_extend) {
        const unsigned shift = 64 - 8 * bytes;
        value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << shift) >> shift);
    }
    return value;
}

Step convert_lanes(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<ConvertPayload>();
    auto* const d = warp.row<std::byte>(operation.operand[0]);
    const auto* source = static_cast<const std::byte*>(warp.row<std::byte>(operation.operand[1]));
    alignas(64) std::byte narrowed[warp_size * 8];
    if (payload.source_register_bytes != payload.source_bytes) {
        narrow_row(payload.source_register_bytes, payload.source_bytes, source, narrowed);
        source = narrowed;
    }
    if (active == all_lanes && payload.destination_register_bytes == payload.destination_bytes) {
        payload.convert(payload, d, source);
        return Step::next;
    }
    alignas(64) std::byte results[warp_size * 8];
    payload.convert(payload, results, source);
    const unsigned register_bytes = payload.destination_register_bytes;
    for_each_lane(active, [&](unsigned lane) {
        const std::uint64_t value = widened(results, payload.destination_bytes, payload.sign_extend, lane);
        std::memcpy(d + lane * register_bytes, &value, register_bytes);
    });
    return Step::next;
}

/// Loop of a Convert: d = f(payload, a).
template <typename D, typename S, typename F>
[[nodiscard]] Convert convert_with(F)
{
    return [](const ConvertPayload& shared, void* destination, const void* source) {
        const ConvertPayload payload = shared;
        auto* const d = static_cast<D*>(destination);
        const auto* const a = static_cast<const S*>(source);
#pragma GCC ivdep
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            d[lane] = F{}(payload, a[lane]);
        }
    };
}

// --- elements in registers ---

enum class Element : std::uint8_t { u8, u16, u32, u64, s8, s16, s32, s64, f16, bf16, f32, f64 };

template <Element element>
struct Traits;
#define TESSERA_INTEGER_ELEMENT(name, cpp)      \
    template <>                                 \
    struct Traits<Element::name> {              \
        using Value = cpp;                      \
        static constexpr bool floating = false; \
    };
TESSERA_INTEGER_ELEMENT(u8, std::uint8_t)
TESSERA_INTEGER_ELEMENT(u16, std::uint16_t)
TESSERA_INTEGER_ELEMENT(u32, std::uint32_t)
TESSERA_INTEGER_ELEMENT(u64, std::uint64_t)
TESSERA_INTEGER_ELEMENT(s8, std::int8_t)
TESSERA_INTEGER_ELEMENT(s16, std::int16_t)
TESSERA_INTEGER_ELEMENT(s32, std::int32_t)
TESSERA_INTEGER_ELEMENT(s64, std::int64_t)
#undef TESSERA_INTEGER_ELEMENT
/// Floating-point values are read as exact doubles and written with one rounding. What becomes of a NaN depends on both
/// types: read() has a parameter for a result of f64, and write() one for such a source.
template <>
struct Traits<Element::f16> {
    using Value = std::uint16_t;
    static constexpr bool floating = true;
    static double read(Value code, bool to_f64)
    {
        return to_f64 ? numerics::double_from_f16(code) : double{numerics::float_from_f16(code)};
    }
    static Value write(double value, const numerics::Conversion& how, bool from_f64)
    {
        return static_cast<Value>(from_f64 ? numerics::encode_f64(numerics::f16_layout, value, how)
                                           : numerics::encode(numerics::f16_layout, value, how));
    }
    static const numerics::Layout& layout() { return numerics::f16_layout; }
};
template <>
struct Traits<Element::bf16> {
    using Value = std::uint16_t;
    static constexpr bool floating = true;
    static double read(Value code, bool) { return numerics::double_from_float(numerics::float_from_bf16(code)); }
    static Value write(double value, const numerics::Conversion& how, bool from_f64)
    {
        return static_cast<Value>(from_f64 ? numerics::encode_f64(numerics::bf16_layout, value, how)
                                           : numerics::encode(numerics::bf16_layout, value, how));
    }
    static const numerics::Layout& layout() { return numerics::bf16_layout; }
};
template <>
struct Traits<Element::f32> {
    using Value = float;
    static constexpr bool floating = true;
    static double read(Value value, bool) { return numerics::double_from_float(value); }
    static Value write(double value, const numerics::Conversion& how, bool from_f64)
    {
        const float result =
            from_f64 ? numerics::float_from_f64(value, how.rounding) : numerics::float_from_double(value, how.rounding);
        return how.sat ? numerics::saturate(result) : result;
    }
    static const numerics::Layout& layout() { return numerics::f32_layout; }
};
template <>
struct Traits<Element::f64> {
    using Value = double;
    static constexpr bool floating = true;
    static double read(Value value, bool) { return value; }
    static Value write(double value, const numerics::Conversion& how, bool)
    {
        return how.sat ? numerics::saturate(value) : value;
    }
    static const numerics::Layout& layout() { return numerics::f64_layout; }
};

[[nodiscard]] std::optional<Element> element_of(Type type)
{
    switch (type) {
        case Type::u8: return Element::u8;
        case Type::u16: return Element::u16;
        case Type::u32: return Element::u32;
        case Type::u64: return Element::u64;
        case Type::s8: return Element::s8;
        case Type::s16: return Element::s16;
        case Type::s32: return Element::s32;
        case Type::s64: return Element::s64;
        case Type::f16: return Element::f16;
        case Type::bf16: return Element::bf16;
        case Type::f32: return Element::f32;
        case Type::f64: return Element::f64;
        default: return std::nullopt;
    }
}

template <typename F>
[[nodiscard]] Convert visit_element(Element element, F f)
{
    switch (element) {
#define TESSERA_ELEMENT(name) \
    case Element::name: return f.template operator()<Element::name>();
        TESSERA_ELEMENT(u8)
        TESSERA_ELEMENT(u16)
        TESSERA_ELEMENT(u32)
        TESSERA_ELEMENT(u64)
        TESSERA_ELEMENT(s8)
        TESSERA_ELEMENT(s16)
        TESSERA_ELEMENT(s32)
        TESSERA_ELEMENT(s64)
        TESSERA_ELEMENT(f16)
        TESSERA_ELEMENT(bf16)
        TESSERA_ELEMENT(f32)
        TESSERA_ELEMENT(f64)
#undef TESSERA_ELEMENT
    }
    return nullptr;
}

// --- integer to integer ---

template <typename D, typename S>
constexpr D clamp_integer(S value)
{
    if (std::cmp_less(value, std::numeric_limits<D>::min())) {
        return std::numeric_limits<D>::min();
    }
    return std::cmp_greater(value, std::numeric_limits<D>::max()) ? std::numeric_limits<D>::max()
                                                                  : static_cast<D>(value);
}

template <typename D, typename S>
[[nodiscard]] Convert integer_to_integer(bool saturate)
{
    return saturate ? convert_with<D, S>([](const ConvertPayload&, S a) { return clamp_integer<D>(a); })
                    : convert_with<D, S>([](const ConvertPayload&, S a) { return static_cast<D>(a); });
}

// --- integer to floating point ---

template <Element destination, typename S>
[[nodiscard]] Convert integer_to_float(const Modifiers& modifiers)
{
    using D = Traits<destination>;
    using V = typename D::Value;
    if constexpr (std::is_floating_point_v<V>) {
        if (modifiers.rounding == Rounding::nearest_even && !modifiers.sat) {  // what the host does
            return convert_with<V, S>([](const ConvertPayload&, S a) { return static_cast<V>(a); });
        }
    }
    return convert_with<V, S>([](const ConvertPayload& p, S a) {
        using Wide = std::conditional_t<std::is_signed_v<S>, std::int64_t, std::uint64_t>;
        const std::uint64_t code = numerics::encode_integer(D::layout(), static_cast<Wide>(a), p.how.rounding);
        if constexpr (std::is_floating_point_v<V>) {
            using Bits = std::conditional_t<sizeof(V) == 4, std::uint32_t, std::uint64_t>;
            const V value = std::bit_cast<V>(static_cast<Bits>(code));
            return p.how.sat ? numerics::saturate(value) : value;
        } else {
            // In [0, 1] the only integers are 0 and 1.
            return static_cast<V>(!p.how.sat ? code
                                  : a <= 0   ? 0
                                             : numerics::encode_integer(D::layout(), std::uint64_t{1}, p.how.rounding));
        }
    });
}

// --- floating point to integer ---

template <typename D, Element source>
[[nodiscard]] Convert float_to_integer()
{
    using S = Traits<source>;
    return convert_with<D, typename S::Value>([](const ConvertPayload& p, typename S::Value a) {
        if constexpr (source == Element::f32) {
            a = numerics::flush_if(a, p.flush_input);
        }
        return numerics::integer_from_double<D>(S::read(a, false), p.how.rounding, source == Element::f64);
    });
}

// --- floating point to floating point ---

template <Element destination, Element source>
[[nodiscard]] Convert float_to_float(const Modifiers& modifiers)
{
    using D = Traits<destination>;
    using S = Traits<source>;
    using V = typename D::Value;
    using A = typename S::Value;
    constexpr bool to_f64 = destination == Element::f64;
    const bool plain = !modifiers.sat && !modifiers.satfinite && !modifiers.relu && !modifiers.ftz &&
                       !modifiers.integral &&
                       modifiers.rounding.value_or(Rounding::nearest_even) == Rounding::nearest_even;
    if (plain) {  // the common ones, in a form that the compiler vectorizes
        if constexpr (source == destination) {
            return convert_with<V, A>([](const ConvertPayload&, A a) { return a; });
        } else if constexpr (source == Element::f32 && destination == Element::f16) {
            return convert_with<V, A>([](const ConvertPayload&, A a) { return numerics::f16_from_float(a); });
        } else if constexpr (source == Element::f32 && destination == Element::bf16) {
            return convert_with<V, A>([](const ConvertPayload&, A a) { return numerics::bf16_from_float(a); });
        } else if constexpr (source == Element::f16 && destination == Element::f32) {
            return convert_with<V, A>([](const ConvertPayload&, A a) { return numerics::float_from_f16(a); });
        } else if constexpr (source == Element::bf16 && destination == Element::f32) {
            return convert_with<V, A>([](const ConvertPayload&, A a) { return numerics::float_from_bf16(a); });
        } else if constexpr (source == Element::f32 && destination == Element::f64) {
            return convert_with<V, A>([](const ConvertPayload&, A a) { return double{a}; });
        } else if constexpr (source == Element::f64 && destination == Element::f32) {
            return convert_with<V, A>([](const ConvertPayload&, A a) {
                return a == a ? static_cast<float>(a) : numerics::float_from_f64(a, Rounding::nearest_even);
            });
        }
    }
    if (modifiers.integral) {
        return convert_with<V, A>([](const ConvertPayload& p, A a) {
            if constexpr (source == Element::f32) {
                a = numerics::flush_if(a, p.flush_input);
            }
            numerics::Conversion exact = p.how;
            exact.rounding = Rounding::nearest_even;
            return D::write(numerics::round_to_integral(S::read(a, to_f64), p.how.rounding), exact, false);
        });
    }
    return convert_with<V, A>([](const ConvertPayload& p, A a) {
        if constexpr (source == Element::f32) {
            a = numerics::flush_if(a, p.flush_input);
        }
        V result = D::write(S::read(a, to_f64), p.how, source == Element::f64);
        if constexpr (destination == Element::f32) {
            result = numerics::flush_if(result, p.flush_result);
        }
        return result;
    });
}

/// Returns true if one integer type has values that the other does not have.
[[nodiscard]] bool can_saturate(Type destination, Type source)
{
    const std::size_t d = ptx::size_of(destination);
    const std::size_t s = ptx::size_of(source);
    return is_signed(destination) ? d < s || (d == s && !is_signed(source)) : is_signed(source) || d < s;
}

/// Checks which modifiers a conversion between two kinds of types allows and needs.
void check(const Decoder& decoder, const Modifiers& modifiers, Type destination, Type source)
{
    const bool to_float = is_floating(destination);
    const bool from_float = is_floating(source);
    const bool narrows = to_float && from_float && ptx::size_of(destination) < ptx::size_of(source);
    const bool sixteen = destination != source && ptx::size_of(destination) == 2 && ptx::size_of(source) == 2;
    refuse(decoder, modifiers.stochastic, "rs");
    refuse(decoder, modifiers.rounding == Rounding::nearest_away, "rna");
    if (from_float && !to_float) {
        if (!modifiers.integral) {
            decoder.fail("a conversion to an integer needs .rni .rzi .rmi or .rpi");
        }
    } else if (to_float && !from_float) {
        if (!modifiers.rounding || modifiers.integral) {
            decoder.fail("a conversion from an integer needs .rn .rz .rm or .rp");
        }
    } else if (narrows) {
        if (!modifiers.rounding || modifiers.integral) {
            decoder.fail("a conversion to a smaller type needs .rn .rz .rm or .rp");
        }
    } else if (modifiers.rounding && !(modifiers.integral && destination == source && to_float) &&
               !(sixteen && !modifiers.integral)) {
        decoder.fail("a conversion from " + dotted(source) + " to " + dotted(destination) + " is not rounded");
    }
    const bool f32_involved = destination == Type::f32 || source == Type::f32;
    refuse(decoder, modifiers.ftz && !f32_involved, "ftz");
    refuse(decoder, modifiers.sat && (destination == Type::bf16 || source == Type::bf16) && to_float, "sat");
    const bool to_half = source == Type::f32 && (destination == Type::f16 || destination == Type::bf16);
    refuse(decoder, modifiers.relu && !to_half, "relu");
    refuse(decoder, modifiers.satfinite && !to_half, "satfinite");
    if (modifiers.relu && modifiers.sat) {
        decoder.fail(".relu and .sat exclude each other");
    }
    if ((modifiers.relu || modifiers.satfinite) &&
        (modifiers.rounding == Rounding::up || modifiers.rounding == Rounding::down)) {
        decoder.fail(".relu and .satfinite need .rn or .rz");
    }
    if (modifiers.sat && !to_float && !from_float && !can_saturate(destination, source)) {
        decoder.fail(".sat is not defined where every " + dotted(source) + " is a " + dotted(destination));
    }
    // Registers of bf16 must have exactly its size.
    if (destination == Type::bf16 || source == Type::bf16) {
        for (const auto& [index, type] : {std::pair{std::size_t{0}, destination}, std::pair{std::size_t{1}, source}}) {
            if (const Type declared = decoder.declared_type(index);
                declared != Type::none && ptx::size_of(declared) != ptx::size_of(type)) {
                decoder.fail("a register of type " + dotted(declared) + " is not of the size of " + dotted(type));
            }
        }
    }
}

[[nodiscard]] Convert conversion_between(Element destination, Element source, const Modifiers& modifiers)
{
    return visit_element(destination, [&]<Element d>() -> Convert {
        return visit_element(source, [&]<Element s>() -> Convert {
            using D = typename Traits<d>::Value;
            using S = typename Traits<s>::Value;
            if constexpr (Traits<d>::floating && Traits<s>::floating) {
                return float_to_float<d, s>(modifiers);
            } else if constexpr (Traits<d>::floating) {
                return integer_to_float<d, S>(modifiers);
            } else if constexpr (Traits<s>::floating) {
                return float_to_integer<D, s>();
            } else {
                return integer_to_integer<D, S>(modifiers.sat);
            }
        });
    });
}

/// The type of an operand's register, which may be wider than the type that is converted. A constant has the latter.
[[nodiscard]] Type register_type(const Decoder& decoder, std::size_t index, Type converted)
{
    const Type declared = decoder.declared_type(index);
    const bool wider =
        declared != Type::none && declared != Type::pred && ptx::size_of(declared) > ptx::size_of(converted);
    return wider ? declared : converted;
}

void decode_single(Decoder& decoder, Operation& operation, const Modifiers& modifiers, Type destination, Type source)
{
    const std::optional<Element> d = element_of(destination);
    const std::optional<Element> s = element_of(source);
    if (!d || !s) {
        decoder.fail("does not convert " + dotted(source) + " to " + dotted(destination));
    }
    check(decoder, modifiers, destination, source);
    expect_operands(decoder, 2);
    auto& payload = decoder.emplace_payload<ConvertPayload>();
    payload.how = modifiers.conversion();
    payload.flush_input =
        modifiers.ftz && source == Type::f32 && destination != Type::f16;  // hardware does not flush here
    payload.flush_result = modifiers.ftz && destination == Type::f32;
    payload.destination_bytes = static_cast<unsigned>(ptx::size_of(destination));
    payload.source_bytes = static_cast<unsigned>(ptx::size_of(source));
    payload.destination_register_bytes = static_cast<unsigned>(ptx::size_of(register_type(decoder, 0, destination)));
    payload.source_register_bytes = static_cast<unsigned>(ptx::size_of(register_type(decoder, 1, source)));
    payload.sign_extend = is_signed(destination);
    payload.convert = conversion_between(*d, *s, modifiers);
    operation.operand[0] = decoder.write(0, register_type(decoder, 0, destination));
    operation.operand[1] = decoder.read(1, register_type(decoder, 1, source));
    operation.execute = convert_lanes;
}

// --- tf32 ---

struct Tf32Payload : Payload {
    numerics::Conversion how;
};

void decode_tf32(Decoder& decoder, Operation& operation, const Modifiers& modifiers, Type source)
{
    if (source != Type::f32) {
        decoder.fail("tf32 is made of .f32, not of " + dotted(source));
    }
    const bool known = modifiers.rounding == Rounding::nearest_away || modifiers.rounding == Rounding::nearest_even ||
                       modifiers.rounding == Rounding::toward_zero;
    if (!known || modifiers.integral) {
        decoder.fail("a conversion to .tf32 needs .rna, .rn or .rz");
    }
    if (modifiers.relu && modifiers.rounding == Rounding::nearest_away) {
        decoder.fail(".relu cannot be combined with .rna");
    }
    refuse(decoder, modifiers.ftz, "ftz");
    refuse(decoder, modifiers.sat, "sat");
    decode_rows(decoder, operation, Type::b32, {Type::f32});
    decoder.emplace_payload<Tf32Payload>().how = modifiers.conversion();
    operation.execute = lanewise_with<Tf32Payload, std::uint32_t, float>(
        [](const Tf32Payload& p, float a) { return numerics::tf32_from_float(a, p.how); });
}

[[nodiscard]] Modifiers take_modifiers(Decoder& decoder)
{
    Modifiers modifiers;
    const std::string_view name =
        decoder.take_one_of({"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna", "rs"});
    modifiers.stochastic = name == "rs";
    modifiers.integral = name.ends_with('i');
    if (name.starts_with("rn")) {
        modifiers.rounding = name == "rna" ? Rounding::nearest_away : Rounding::nearest_even;
    } else if (name.starts_with("rz")) {
        modifiers.rounding = Rounding::toward_zero;
    } else if (name.starts_with("rm")) {
        modifiers.rounding = Rounding::down;
    } else if (name.starts_with("rp")) {
        modifiers.rounding = Rounding::up;
    }
    modifiers.ftz = decoder.take("ftz");
    modifiers.sat = decoder.take("sat");
    modifiers.satfinite = decoder.take("satfinite");
    modifiers.relu = decoder.take("relu");
    return modifiers;
}

void decode_cvt(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::conversion;
    if (decoder.take("pack")) {
        return conversion::decode_pack(decoder, operation);
    }
    const Modifiers modifiers = take_modifiers(decoder);
    // Some packed types are not register types, so compare names.
    const std::vector<std::string> types = decoder.remaining();
    if (types.size() < 2) {
        decoder.fail("needs two types: .to.from");
    }
    if (conversion::is_packed_type(types[0]) || conversion::is_packed_type(types[1])) {
        (void)decoder.take(types[0]);
        (void)decoder.take(types[1]);
        return conversion::decode_packed(decoder, operation, modifiers, types[0], types[1]);
    }
    const Type destination = decoder.require_type();
    const Type source = decoder.require_type();
    if (destination == Type::tf32) {
        return decode_tf32(decoder, operation, modifiers, source);
    }
    decode_single(decoder, operation, modifiers, destination, source);
}

constexpr InstructionEntry entries[] = {{"cvt", decode_cvt}};

}  // namespace

void conversion::refuse(const Decoder& decoder, bool present, std::string_view modifier)
{
    if (present) {
        decoder.fail("." + std::string(modifier) + " is not defined for this conversion");
    }
}

std::span<const InstructionEntry> conversion_instructions()
{
    static const std::vector<InstructionEntry> all = join_tables({entries, move_instructions()});
    return all;
}

}  // namespace tessera::emulator
