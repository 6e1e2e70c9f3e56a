// Comparisons and selections (PTX ISA 9.7.6 "Comparison and Selection Instructions", 9.7.7 "Half Precision Comparison
// Instructions"), and testp.

#include <array>
#include <bit>
#include <optional>
#include <span>

#include "execute/lanewise.hpp"
#include "numerics/float_ops.hpp"
#include "numerics/formats.hpp"

namespace tessera::emulator {

using ptx::Type;

namespace {

/// Ordered comparisons are false if an operand is NaN; those with a trailing u are true. Integers have only the first
/// six.
enum class Relation : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

template <Relation relation, typename T>
constexpr bool holds(T a, T b)
{
    switch (relation) {
        case Relation::eq: return a == b;
        case Relation::ne: return std::is_floating_point_v<T> ? a < b || a > b : a != b;
        case Relation::lt: return a < b;
        case Relation::le: return a <= b;
        case Relation::gt: return a > b;
        case Relation::ge: return a >= b;
        case Relation::equ: return !(a < b || a > b);
        case Relation::neu: return !(a == b);
        case Relation::ltu: return !(a >= b);
        case Relation::leu: return !(a > b);
        case Relation::gtu: return !(a <= b);
        case Relation::geu: return !(a < b);
        case Relation::num: return a == a && b == b;
        case Relation::nan: break;
    }
    return a != a || b != b;
}

// How the compared value is computed from a row's element.
template <typename T>
struct Plain {
    using Row = T;
    using Value = T;
    static constexpr T value(T bits) { return bits; }
};
struct Flushed {
    using Row = float;
    using Value = float;
    static float value(float bits) { return numerics::flush(bits); }
};
template <bool bfloat, bool ftz, bool packed_high, typename RowType>
struct Half {
    using Row = RowType;
    using Value = float;
    static constexpr float value(RowType bits)
    {
        const auto code = static_cast<std::uint16_t>(packed_high ? bits >> (8 * sizeof(RowType) - 16) : bits);
        if constexpr (bfloat) {
            return numerics::float_from_bf16(code);
        } else {
            return numerics::float_from_f16(ftz ? numerics::flush_f16(code) : code);
        }
    }
};

/// The lanes, of all 32, for which a relation holds between two rows.
using Compare = LaneMask (*)(const Warp& warp, Ref a, Ref b);

template <typename Source, Relation relation>
LaneMask compare_rows(const Warp& warp, Ref a, Ref b)
{
    using Row = typename Source::Row;
    return test_lanes([](Row x, Row y) { return holds<relation>(Source::value(x), Source::value(y)); },
                      warp.row<Row>(a), warp.row<Row>(b));
}

/// setp without second destination and Boolean operation: the most common form.
template <typename Source, Relation relation>
Step set_plain_predicate(Warp& warp, const Operation& operation, LaneMask active)
{
    warp.set_predicate(operation.operand[0], active,
                       compare_rows<Source, relation>(warp, operation.operand[2], operation.operand[3]));
    return Step::next;
}

struct Comparison {
    Compare compare = nullptr;
    Execute set_plain = nullptr;
};

template <typename Source>
[[nodiscard]] Comparison comparison_of(Relation relation)
{
    switch (relation) {
#define TESSERA_RELATION(name) \
    case Relation::name: return {compare_rows<Source, Relation::name>, set_plain_predicate<Source, Relation::name>};
        TESSERA_RELATION(eq)
        TESSERA_RELATION(ne)
        TESSERA_RELATION(lt)
        TESSERA_RELATION(le)
        TESSERA_RELATION(gt)
        TESSERA_RELATION(ge)
        default: break;
    }
    if constexpr (std::is_floating_point_v<typename Source::Value>) {
        switch (relation) {
            TESSERA_RELATION(equ)
            TESSERA_RELATION(neu)
            TESSERA_RELATION(ltu)
            TESSERA_RELATION(leu)
            TESSERA_RELATION(gtu)
            TESSERA_RELATION(geu)
            TESSERA_RELATION(num)
            TESSERA_RELATION(nan)
#undef TESSERA_RELATION
            default: break;
        }
    }
    return {};
}

struct NamedRelation {
    std::string_view name;
    Relation relation;
    bool unsigned_only = false;  ///< lo, ls, hi, hs
};

constexpr std::array relations{
    NamedRelation{"eq", Relation::eq},       NamedRelation{"ne", Relation::ne},
    NamedRelation{"lt", Relation::lt},       NamedRelation{"le", Relation::le},
    NamedRelation{"gt", Relation::gt},       NamedRelation{"ge", Relation::ge},
    NamedRelation{"equ", Relation::equ},     NamedRelation{"neu", Relation::neu},
    NamedRelation{"ltu", Relation::ltu},     NamedRelation{"leu", Relation::leu},
    NamedRelation{"gtu", Relation::gtu},     NamedRelation{"geu", Relation::geu},
    NamedRelation{"num", Relation::num},     NamedRelation{"nan", Relation::nan},
    NamedRelation{"lo", Relation::lt, true}, NamedRelation{"ls", Relation::le, true},
    NamedRelation{"hi", Relation::gt, true}, NamedRelation{"hs", Relation::ge, true},
};

[[nodiscard]] NamedRelation require_relation(Decoder& decoder)
{
    for (const NamedRelation& named : relations) {
        if (decoder.take(named.name)) {
            return named;
        }
    }
    decoder.fail("needs a comparison: .eq .ne .lt .le .gt .ge ...");
}

enum class Boolean : std::uint8_t { none, conjunction, disjunction, exclusive };

[[nodiscard]] Boolean take_boolean(Decoder& decoder)
{
    const std::string_view name = decoder.take_one_of({"and", "or", "xor"});
    return name == "and"   ? Boolean::conjunction
           : name == "or"  ? Boolean::disjunction
           : name == "xor" ? Boolean::exclusive
                           : Boolean::none;
}

struct ComparePayload : Payload {
    Compare compare = nullptr;
    Compare compare_high = nullptr;  ///< of the upper halves of packed operands; else null
    Boolean boolean = Boolean::none;
    Decoder::Predicate predicate;  ///< its second operand

    [[nodiscard]] LaneMask combine(const Warp& warp, LaneMask result) const
    {
        switch (boolean) {
            case Boolean::none: return result;
            case Boolean::conjunction: return result & warp.predicate(predicate);
            case Boolean::disjunction: return result | warp.predicate(predicate);
            case Boolean::exclusive: break;
        }
        return result ^ warp.predicate(predicate);
    }
};

/// What set and setp need to know about the source type.
struct SourceComparison {
    Comparison low, high;  ///< high: of packed types
};

[[nodiscard]] SourceComparison compare_type(Decoder& decoder, Type type, const NamedRelation& named, bool ftz)
{
    const Relation relation = named.relation;
    const bool bits = type == Type::b16 || type == Type::b32 || type == Type::b64;
    const bool is_unsigned = type == Type::u16 || type == Type::u32 || type == Type::u64;
    if ((bits && relation != Relation::eq && relation != Relation::ne) || (named.unsigned_only && !is_unsigned)) {
        decoder.fail("." + std::string(named.name) + " is not defined for type " + dotted(type));
    }
    if (ftz && type != Type::f32 && type != Type::f16 && type != Type::f16x2) {
        decoder.fail(".ftz is not defined for type " + dotted(type));
    }
    using U16 = std::uint16_t;
    using U32 = std::uint32_t;
    SourceComparison result;
    switch (type) {
        case Type::b16:
        case Type::u16: result.low = comparison_of<Plain<U16>>(relation); break;
        case Type::b32:
        case Type::u32: result.low = comparison_of<Plain<U32>>(relation); break;
        case Type::b64:
        case Type::u64: result.low = comparison_of<Plain<std::uint64_t>>(relation); break;
        case Type::s16: result.low = comparison_of<Plain<std::int16_t>>(relation); break;
        case Type::s32: result.low = comparison_of<Plain<std::int32_t>>(relation); break;
        case Type::s64: result.low = comparison_of<Plain<std::int64_t>>(relation); break;
        case Type::f32:
            result.low = ftz ? comparison_of<Flushed>(relation) : comparison_of<Plain<float>>(relation);
            break;
        case Type::f64: result.low = comparison_of<Plain<double>>(relation); break;
        case Type::f16:
            result.low = ftz ? comparison_of<Half<false, true, false, U16>>(relation)
                             : comparison_of<Half<false, false, false, U16>>(relation);
            break;
        case Type::bf16: result.low = comparison_of<Half<true, false, false, U16>>(relation); break;
        case Type::f16x2:
            result.low = ftz ? comparison_of<Half<false, true, false, U32>>(relation)
                             : comparison_of<Half<false, false, false, U32>>(relation);
            result.high = ftz ? comparison_of<Half<false, true, true, U32>>(relation)
                              : comparison_of<Half<false, false, true, U32>>(relation);
            break;
        case Type::bf16x2:
            result.low = comparison_of<Half<true, false, false, U32>>(relation);
            result.high = comparison_of<Half<true, false, true, U32>>(relation);
            break;
        default: fail_type(decoder, type);
    }
    if (result.low.compare == nullptr) {
        decoder.fail("." + std::string(named.name) + " is for floating-point types, not for " + dotted(type));
    }
    if (type == Type::bf16 || type == Type::bf16x2) {
        expect_capability(decoder, 90, "comparing " + dotted(type));
    }
    return result;
}

// --- setp ---

/// p|q: q has the opposite comparison, or that of the upper halves.
Step set_predicates(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<ComparePayload>();
    const LaneMask result = payload.compare(warp, operation.operand[2], operation.operand[3]);
    const LaneMask second = payload.compare_high != nullptr
                                ? payload.compare_high(warp, operation.operand[2], operation.operand[3])
                                : ~result;
    const LaneMask p = payload.combine(warp, result);  // both before either is written: q may be an operand
    const LaneMask q = payload.combine(warp, second);
    warp.set_predicate(operation.operand[0], active, p);
    if (operation.operand[1] != no_row) {
        warp.set_predicate(operation.operand[1], active, q);
    }
    return Step::next;
}

void decode_setp(Decoder& decoder, Operation& operation)
{
    const NamedRelation relation = require_relation(decoder);
    const Boolean boolean = take_boolean(decoder);
    const bool ftz = decoder.take("ftz");
    const Type type = decoder.require_type();
    operation.kind = is_floating(type) ? InstructionClass::floating : InstructionClass::integer;
    const SourceComparison comparison = compare_type(decoder, type, relation, ftz);
    expect_operands(decoder, boolean == Boolean::none ? 3 : 4);
    operation.operand[0] = decoder.write(0, Type::pred);
    operation.operand[1] = decoder.write_second(0);
    operation.operand[2] = decoder.read(1, type);
    operation.operand[3] = decoder.read(2, type);
    if (boolean == Boolean::none && operation.operand[1] == no_row) {
        operation.execute = comparison.low.set_plain;
        return;
    }
    auto& payload = decoder.emplace_payload<ComparePayload>();
    payload.compare = comparison.low.compare;
    payload.compare_high = comparison.high.compare;
    payload.boolean = boolean;
    if (boolean != Boolean::none) {
        payload.predicate = decoder.read_predicate(3);
    }
    operation.execute = set_predicates;
}

// --- set ---

template <typename D>
Step set_values(Warp& warp, const Operation& operation, LaneMask active, D yes)
{
    const auto& payload = operation.as<ComparePayload>();
    const LaneMask result = payload.combine(warp, payload.compare(warp, operation.operand[1], operation.operand[2]));
    D* const d = warp.row<D>(operation.operand[0]);
    for_each_lane(active, [&](unsigned lane) { d[lane] = (result >> lane & 1) != 0 ? yes : D{0}; });
    return Step::next;
}

template <typename D, D yes>
Step set_value(Warp& warp, const Operation& operation, LaneMask active)
{
    return set_values<D>(warp, operation, active, yes);
}

/// Both halves of a packed destination. `yes` is for one half.
template <std::uint32_t yes>
Step set_packed(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<ComparePayload>();
    const LaneMask low = payload.combine(warp, payload.compare(warp, operation.operand[1], operation.operand[2]));
    const LaneMask high = payload.combine(warp, payload.compare_high(warp, operation.operand[1], operation.operand[2]));
    auto* const d = warp.row<std::uint32_t>(operation.operand[0]);
    for_each_lane(active, [&](unsigned lane) {
        d[lane] = ((low >> lane & 1) != 0 ? yes : 0u) | ((high >> lane & 1) != 0 ? yes << 16 : 0u);
    });
    return Step::next;
}

constexpr std::uint32_t one_f32 = 0x3F800000;
constexpr std::uint16_t one_f16 = 0x3C00;
constexpr std::uint16_t one_bf16 = 0x3F80;

[[nodiscard]] Execute set_for(Decoder& decoder, Type destination, Type source)
{
    const bool half = source == Type::f16 || source == Type::bf16;
    if (source == Type::f16x2 || source == Type::bf16x2) {
        if (destination == Type::u32 || destination == Type::s32) {
            return set_packed<0xFFFF>;
        }
        if (destination == source) {
            return destination == Type::f16x2 ? set_packed<one_f16> : set_packed<one_bf16>;
        }
        decoder.fail("set of " + dotted(source) + " gives .u32, .s32 or " + dotted(source) + ", not " +
                     dotted(destination));
    }
    switch (destination) {
        case Type::u32:
        case Type::s32: return set_value<std::uint32_t, 0xFFFFFFFF>;
        case Type::f32:
            if (!half) {
                return set_value<std::uint32_t, one_f32>;
            }
            break;
        case Type::u16:
        case Type::s16:
            if (half) {
                return set_value<std::uint16_t, 0xFFFF>;
            }
            break;
        case Type::f16:
            if (source != Type::bf16) {
                return set_value<std::uint16_t, one_f16>;
            }
            break;
        case Type::bf16: return set_value<std::uint16_t, one_bf16>;
        default: break;
    }
    decoder.fail("set of " + dotted(source) + " does not give " + dotted(destination));
}

void decode_set(Decoder& decoder, Operation& operation)
{
    const NamedRelation relation = require_relation(decoder);
    const Boolean boolean = take_boolean(decoder);
    const bool ftz = decoder.take("ftz");
    const Type destination = decoder.require_type();
    const Type source = decoder.require_type();
    operation.kind = is_floating(source) ? InstructionClass::floating : InstructionClass::integer;
    const SourceComparison comparison = compare_type(decoder, source, relation, ftz);
    expect_operands(decoder, boolean == Boolean::none ? 3 : 4);
    operation.operand[0] = decoder.write(0, destination);
    operation.operand[1] = decoder.read(1, source);
    operation.operand[2] = decoder.read(2, source);
    auto& payload = decoder.emplace_payload<ComparePayload>();
    payload.compare = comparison.low.compare;
    payload.compare_high = comparison.high.compare;
    payload.boolean = boolean;
    if (boolean != Boolean::none) {
        payload.predicate = decoder.read_predicate(3);
    }
    operation.execute = set_for(decoder, destination, source);
}

// --- selp, slct ---

struct SelectPayload : Payload {
    Decoder::Predicate predicate;
};

template <typename T>
Step select(Warp& warp, const Operation& operation, LaneMask active)
{
    const LaneMask chosen = warp.predicate(operation.as<SelectPayload>().predicate);
    const T* const a = warp.row<T>(operation.operand[1]);
    const T* const b = warp.row<T>(operation.operand[2]);
    T* const d = warp.row<T>(operation.operand[0]);
    if (active == all_lanes) {
#pragma GCC ivdep
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            const T x = a[lane];
            const T y = b[lane];
            d[lane] = (chosen >> lane & 1) != 0 ? x : y;
        }
    } else {
        for_each_lane(active, [&](unsigned lane) { d[lane] = (chosen >> lane & 1) != 0 ? a[lane] : b[lane]; });
    }
    return Step::next;
}

[[nodiscard]] bool is_selectable(Type type)
{
    using enum Type;
    return type == b16 || type == b32 || type == b64 || type == u16 || type == u32 || type == u64 || type == s16 ||
           type == s32 || type == s64 || type == f32 || type == f64;
}

void decode_selp(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    decoder.effects().flow = ValueFlow::selected;
    const Type type = decoder.require_type();
    if (!is_selectable(type)) {
        fail_type(decoder, type);
    }
    expect_operands(decoder, 4);
    operation.operand[0] = decoder.write(0, type);
    operation.operand[1] = decoder.read(1, type);
    operation.operand[2] = decoder.read(2, type);
    decoder.emplace_payload<SelectPayload>().predicate = decoder.read_predicate(3);
    visit_bits(ptx::size_of(type), [&]<typename T>() { operation.execute = select<T>; });
}

void decode_slct(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const bool ftz = decoder.take("ftz");
    const Type type = decoder.require_type();
    const Type selector = decoder.require_type();
    if (!is_selectable(type)) {
        fail_type(decoder, type);
    }
    if (selector != Type::s32 && selector != Type::f32) {
        decoder.fail("the selector is of type .s32 or .f32, not " + dotted(selector));
    }
    if (ftz && selector != Type::f32) {
        decoder.fail(".ftz needs a selector of type .f32");
    }
    decode_rows(decoder, operation, type, {type, type, selector});
    visit_bits(ptx::size_of(type), [&]<typename T>() {
        if (selector == Type::s32) {
            operation.execute =
                lanewise<T, T, T, std::int32_t>([](T a, T b, std::int32_t c) { return c >= 0 ? a : b; });
        } else if (ftz) {
            operation.execute =
                lanewise<T, T, T, float>([](T a, T b, float c) { return numerics::flush(c) >= 0.0F ? a : b; });
        } else {  // NaN and all values below zero select b; -0 counts as zero
            operation.execute = lanewise<T, T, T, float>([](T a, T b, float c) { return c >= 0.0F ? a : b; });
        }
    });
}

// --- testp ---

struct ClassPayload : Payload {
    numerics::FloatClass which{};
};

template <typename T>
Step test_class(Warp& warp, const Operation& operation, LaneMask active)
{
    const numerics::FloatClass which = operation.as<ClassPayload>().which;
    const LaneMask result = test_lanes([which](T a) { return numerics::has_class(a, which); },
                                       static_cast<const T*>(warp.row<T>(operation.operand[1])));
    warp.set_predicate(operation.operand[0], active, result);
    return Step::next;
}

void decode_testp(Decoder& decoder, Operation& operation)
{
    using numerics::FloatClass;
    operation.kind = InstructionClass::floating;
    constexpr std::array<std::pair<std::string_view, FloatClass>, 6> classes{{{"finite", FloatClass::finite},
                                                                              {"infinite", FloatClass::infinite},
                                                                              {"number", FloatClass::number},
                                                                              {"notanumber", FloatClass::notanumber},
                                                                              {"normal", FloatClass::normal},
                                                                              {"subnormal", FloatClass::subnormal}}};
    std::optional<FloatClass> which;
    for (const auto& [name, value] : classes) {
        if (decoder.take(name)) {
            which = value;
            break;
        }
    }
    if (!which) {
        decoder.fail("needs .finite .infinite .number .notanumber .normal or .subnormal");
    }
    const Type type = decoder.require_type();
    if (type != Type::f32 && type != Type::f64) {
        fail_type(decoder, type);
    }
    expect_operands(decoder, 2);
    operation.operand[0] = decoder.write(0, Type::pred);
    operation.operand[1] = decoder.read(1, type);
    decoder.emplace_payload<ClassPayload>().which = *which;
    operation.execute = type == Type::f32 ? test_class<float> : test_class<double>;
}

constexpr InstructionEntry entries[] = {
    {"setp", decode_setp}, {"set", decode_set}, {"selp", decode_selp}, {"slct", decode_slct}, {"testp", decode_testp},
};

}  // namespace

std::span<const InstructionEntry> comparison_instructions() { return entries; }

}  // namespace tessera::emulator
