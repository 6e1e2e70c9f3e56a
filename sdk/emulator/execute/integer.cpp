// Integer arithmetic (PTX ISA 9.7.1 "Integer Arithmetic Instructions", 9.7.2 "Extended-Precision Integer Arithmetic").

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <vector>

#include "execute/integer.hpp"
#include "execute/lanewise.hpp"

namespace tessera::emulator {

using ptx::Type;

using namespace integer;

namespace {

constexpr std::int32_t clamp_to_s32(std::int64_t value)
{
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, std::numeric_limits<std::int32_t>::min(),
                                                              std::numeric_limits<std::int32_t>::max()));
}

/// Applies `f` to both 16-bit halves of packed operands.
template <typename Half, typename F, typename... Packed>
constexpr std::uint32_t each_half(F f, Packed... packed)
{
    const auto low = static_cast<std::uint16_t>(f(static_cast<Half>(packed)...));
    const auto high = static_cast<std::uint16_t>(f(static_cast<Half>(packed >> 16)...));
    return low | static_cast<std::uint32_t>(high) << 16;
}

[[nodiscard]] Type widened(Type type)
{
    switch (type) {
        case Type::u16: return Type::u32;
        case Type::s16: return Type::s32;
        case Type::u32: return Type::u64;
        case Type::s32: return Type::s64;
        default: return Type::none;
    }
}

// --- add, sub ---

template <bool subtract>
void decode_add_sub(Decoder& decoder, Operation& operation)
{
    if (names_floating_type(decoder)) {
        return subtract ? floating::decode_sub(decoder, operation) : floating::decode_add(decoder, operation);
    }
    operation.kind = InstructionClass::integer;
    if (decoder.take("cc")) {
        return decode_carry(decoder, operation, CarryUse::out, subtract);
    }
    const bool saturate = decoder.take("sat");
    const Type type = decoder.require_type();
    if (saturate && type != Type::s32) {
        decoder.fail(".sat is for .s32 only");
    }
    decode_rows(decoder, operation, type, {type, type});
    if (saturate) {
        operation.execute = lanewise<std::int32_t, std::int32_t, std::int32_t>([](std::int32_t a, std::int32_t b) {
            return clamp_to_s32(subtract ? std::int64_t{a} - b : std::int64_t{a} + b);
        });
        return;
    }
    if (!subtract && (type == Type::u16x2 || type == Type::s16x2)) {
        expect_capability(decoder, 90, "add" + dotted(type));
        operation.execute = lanewise<std::uint32_t, std::uint32_t, std::uint32_t>([](std::uint32_t a, std::uint32_t b) {
            return ((a & 0xFFFF0000u) + (b & 0xFFFF0000u)) | ((a + b) & 0xFFFFu);
        });
        return;
    }
    const bool known = visit_integer(type, [&]<typename T>() {
        operation.execute =
            lanewise<T, T, T>([](T a, T b) { return subtract ? wrapping_sub(a, b) : wrapping_add(a, b); });
    });
    if (!known) {
        fail_type(decoder, type);
    }
}

// --- mul, mad ---

void decode_mul(Decoder& decoder, Operation& operation)
{
    if (names_floating_type(decoder)) {
        return floating::decode_mul(decoder, operation);
    }
    operation.kind = InstructionClass::integer;
    const std::string_view half = decoder.take_one_of({"lo", "hi", "wide"});
    const Type type = decoder.require_type();
    if (half == "wide") {
        if (widened(type) == Type::none) {
            decoder.fail("mul.wide takes 16- and 32-bit types, not " + dotted(type));
        }
        decode_rows(decoder, operation, widened(type), {type, type});
        visit_integer(type, [&]<typename T>() {
            if constexpr (sizeof(T) < 8) {
                operation.execute = lanewise<Wide<T>, T, T>(
                    [](T a, T b) { return static_cast<Wide<T>>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)); });
            }
        });
        return;
    }
    if (half.empty()) {
        decoder.fail("an integer mul needs .lo, .hi or .wide");
    }
    decode_rows(decoder, operation, type, {type, type});
    const bool known = visit_integer(type, [&]<typename T>() {
        operation.execute = half == "lo" ? lanewise<T, T, T>([](T a, T b) { return low_product(a, b); })
                                         : lanewise<T, T, T>([](T a, T b) { return high_product(a, b); });
    });
    if (!known) {
        fail_type(decoder, type);
    }
}

void decode_mad(Decoder& decoder, Operation& operation)
{
    if (names_floating_type(decoder)) {
        return floating::decode_mad(decoder, operation);
    }
    operation.kind = InstructionClass::integer;
    if (decoder.take("cc")) {
        return decode_mad_carry(decoder, operation, CarryUse::out);
    }
    const std::string_view half = decoder.take_one_of({"lo", "hi", "wide"});
    const bool saturate = decoder.take("sat");
    const Type type = decoder.require_type();
    if (half.empty()) {
        decoder.fail("an integer mad needs .lo, .hi or .wide");
    }
    if (saturate) {
        if (half != "hi" || type != Type::s32) {
            decoder.fail(".sat is for mad.hi.s32 only");
        }
        decode_rows(decoder, operation, type, {type, type, type});
        operation.execute = lanewise<std::int32_t, std::int32_t, std::int32_t, std::int32_t>(
            [](std::int32_t a, std::int32_t b, std::int32_t c) {
                return clamp_to_s32(std::int64_t{high_product(a, b)} + c);
            });
        return;
    }
    if (half == "wide") {
        if (widened(type) == Type::none) {
            decoder.fail("mad.wide takes 16- and 32-bit types, not " + dotted(type));
        }
        decode_rows(decoder, operation, widened(type), {type, type, widened(type)});
        visit_integer(type, [&]<typename T>() {
            if constexpr (sizeof(T) < 8) {
                using W = Wide<T>;
                operation.execute = lanewise<W, T, T, W>([](T a, T b, W c) {
                    return wrapping_add<W>(static_cast<W>(static_cast<W>(a) * static_cast<W>(b)), c);
                });
            }
        });
        return;
    }
    decode_rows(decoder, operation, type, {type, type, type});
    const bool known = visit_integer(type, [&]<typename T>() {
        operation.execute =
            half == "lo" ? lanewise<T, T, T, T>([](T a, T b, T c) { return wrapping_add<T>(low_product(a, b), c); })
                         : lanewise<T, T, T, T>([](T a, T b, T c) { return wrapping_add<T>(high_product(a, b), c); });
    });
    if (!known) {
        fail_type(decoder, type);
    }
}

/// The 48-bit product of the low 24 bits of a and b.
template <typename T>
constexpr std::int64_t product24(T a, T b)
{
    if constexpr (std::is_signed_v<T>) {
        return std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(a) << 8) >> 8} *
               (static_cast<std::int32_t>(static_cast<std::uint32_t>(b) << 8) >> 8);
    } else {
        return static_cast<std::int64_t>(std::uint64_t{a & 0xFFFFFFu} * (b & 0xFFFFFFu));
    }
}

template <bool high, typename T>
constexpr T part24(T a, T b)
{
    return static_cast<T>(high ? product24(a, b) >> 16 : product24(a, b));
}

template <bool with_addend>
void decode_mul24(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const std::string_view half = decoder.take_one_of({"lo", "hi"});
    const bool saturate = with_addend && decoder.take("sat");
    const Type type = decoder.require_type();
    if (half.empty()) {
        decoder.fail("needs .lo or .hi");
    }
    if (type != Type::u32 && type != Type::s32) {
        fail_type(decoder, type);
    }
    if (saturate && (half != "hi" || type != Type::s32)) {
        decoder.fail(".sat is for mad24.hi.s32 only");
    }
    if constexpr (with_addend) {
        decode_rows(decoder, operation, type, {type, type, type});
    } else {
        decode_rows(decoder, operation, type, {type, type});
    }
    visit_integer(type, [&]<typename T>() {
        if constexpr (sizeof(T) == 4 && with_addend) {
            operation.execute =
                half == "lo"
                    ? lanewise<T, T, T, T>([](T a, T b, T c) { return wrapping_add<T>(part24<false>(a, b), c); })
                    : lanewise<T, T, T, T>([](T a, T b, T c) { return wrapping_add<T>(part24<true>(a, b), c); });
            if constexpr (std::is_signed_v<T>) {
                if (saturate) {
                    operation.execute = lanewise<T, T, T, T>(
                        [](T a, T b, T c) { return clamp_to_s32(std::int64_t{part24<true>(a, b)} + c); });
                }
            }
        } else if constexpr (sizeof(T) == 4) {
            operation.execute = half == "lo" ? lanewise<T, T, T>([](T a, T b) { return part24<false>(a, b); })
                                             : lanewise<T, T, T>([](T a, T b) { return part24<true>(a, b); });
        }
    });
}

// --- div, rem ---

/// For a divisor other than 0. A quotient of 32-bit integers is at least 2^-32 of its size away from the next integer, or
/// exact, so that rounding it to 53 bits does not change its integral part.
template <bool remainder, typename T>
T divide_by_doubles(T a, T b)
{
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    const T quotient = static_cast<T>(static_cast<Wide>(static_cast<double>(a) / static_cast<double>(b)));
    return remainder ? wrapping_sub(a, low_product(quotient, b)) : quotient;
}

/// PTX leaves division by zero undefined. Hardware returns all ones, for quotient and remainder.
template <typename T, bool remainder>
Step divide(Warp& warp, const Operation& operation, LaneMask active)
{
    const T* const a = warp.row<T>(operation.operand[1]);
    const T* const b = warp.row<T>(operation.operand[2]);
    T* const d = warp.row<T>(operation.operand[0]);
    if constexpr (sizeof(T) == 4) {
        if (active == all_lanes && equal_lanes(b, T{0}) == 0) {
            map_lanes(active, [](T x, T y) { return divide_by_doubles<remainder>(x, y); }, d, a, b);
            return Step::next;
        }
    }
    LaneMask zero = 0;
    for_each_lane(active, [&](unsigned lane) {
        const T divisor = b[lane];
        if (divisor == 0) {
            zero |= LaneMask{1} << lane;
            d[lane] = static_cast<T>(~T{0});
        } else if (std::is_signed_v<T> && divisor == static_cast<T>(-1)) {  // -smallest overflows
            d[lane] = remainder ? T{0} : wrapping_sub(T{0}, a[lane]);
        } else {
            d[lane] = static_cast<T>(remainder ? a[lane] % divisor : a[lane] / divisor);
        }
    });
    if (zero != 0 && warp.checks()) {
        warp.follow(operation, operation.operand[0], zero, FindingKind::invalid_operand, [] {
            return "integer division by zero: the result is undefined; test the divisor before the result is used";
        });
    }
    return Step::next;
}

template <bool remainder>
void decode_division(Decoder& decoder, Operation& operation)
{
    if (!remainder && names_floating_type(decoder)) {
        return floating::decode_div(decoder, operation);
    }
    operation.kind = InstructionClass::integer;
    const Type type = decoder.require_type();
    decode_rows(decoder, operation, type, {type, type});
    if (!visit_integer(type, [&]<typename T>() { operation.execute = divide<T, remainder>; })) {
        fail_type(decoder, type);
    }
}

// --- abs, neg, sad, min, max ---

template <typename T>
constexpr T absolute(T a)
{
    return a < 0 ? wrapping_sub(T{0}, a) : a;
}

template <bool negate>
void decode_abs_neg(Decoder& decoder, Operation& operation)
{
    if (names_floating_type(decoder)) {
        return negate ? floating::decode_neg(decoder, operation) : floating::decode_abs(decoder, operation);
    }
    operation.kind = InstructionClass::integer;
    const Type type = decoder.require_type();
    if (!is_signed(type)) {
        fail_type(decoder, type);
    }
    decode_rows(decoder, operation, type, {type});
    const bool known = visit_integer(type, [&]<typename T>() {
        operation.execute = lanewise<T, T>([](T a) { return negate ? wrapping_sub(T{0}, a) : absolute(a); });
    });
    if (!known) {
        fail_type(decoder, type);
    }
}

void decode_sad(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const Type type = decoder.require_type();
    decode_rows(decoder, operation, type, {type, type, type});
    const bool known = visit_integer(type, [&]<typename T>() {
        operation.execute = lanewise<T, T, T, T>(
            [](T a, T b, T c) { return wrapping_add<T>(c, a < b ? wrapping_sub(b, a) : wrapping_sub(a, b)); });
    });
    if (!known) {
        fail_type(decoder, type);
    }
}

template <bool maximum, bool relu, typename T>
constexpr T extreme(T a, T b)
{
    const T chosen = (a < b) != maximum ? a : b;
    return relu && chosen < T{0} ? T{0} : chosen;
}

template <bool maximum>
void decode_min_max(Decoder& decoder, Operation& operation)
{
    if (names_floating_type(decoder)) {
        return maximum ? floating::decode_max(decoder, operation) : floating::decode_min(decoder, operation);
    }
    operation.kind = InstructionClass::integer;
    const bool relu = decoder.take("relu");
    const Type type = decoder.require_type();
    if (relu) {
        expect_capability(decoder, 90, "min and max with .relu");
        if (type != Type::s32 && type != Type::s16x2) {
            decoder.fail(".relu is for .s32 and .s16x2 only");
        }
    }
    decode_rows(decoder, operation, type, {type, type});
    if (type == Type::u16x2 || type == Type::s16x2) {
        expect_capability(decoder, 90, "min and max" + dotted(type));
        using U = std::uint32_t;
        if (type == Type::u16x2) {
            operation.execute = lanewise<U, U, U>(
                [](U a, U b) { return each_half<std::uint16_t>(extreme<maximum, false, std::uint16_t>, a, b); });
        } else if (relu) {
            operation.execute = lanewise<U, U, U>(
                [](U a, U b) { return each_half<std::int16_t>(extreme<maximum, true, std::int16_t>, a, b); });
        } else {
            operation.execute = lanewise<U, U, U>(
                [](U a, U b) { return each_half<std::int16_t>(extreme<maximum, false, std::int16_t>, a, b); });
        }
        return;
    }
    if (relu) {
        using S = std::int32_t;
        operation.execute = lanewise<S, S, S>([](S a, S b) { return extreme<maximum, true>(a, b); });
        return;
    }
    const bool known = visit_integer(type, [&]<typename T>() {
        operation.execute = lanewise<T, T, T>([](T a, T b) { return extreme<maximum, false>(a, b); });
    });
    if (!known) {
        fail_type(decoder, type);
    }
}

// --- dot products of bytes ---

template <typename T>
constexpr std::uint32_t byte_of(std::uint32_t word, unsigned index)
{
    return static_cast<std::uint32_t>(static_cast<T>(word >> (8 * index)));
}

template <typename T>
constexpr std::uint32_t half_of(std::uint32_t word, unsigned index)
{
    return static_cast<std::uint32_t>(static_cast<T>(word >> (16 * index)));
}

template <typename A, typename B>
constexpr std::uint32_t dot4(std::uint32_t a, std::uint32_t b, std::uint32_t c)
{
    for (unsigned i = 0; i < 4; ++i) {
        c += byte_of<A>(a, i) * byte_of<B>(b, i);
    }
    return c;
}

/// `a` holds 16-bit values, `b` bytes; the upper or lower two bytes are used.
template <bool high, typename A, typename B>
constexpr std::uint32_t dot2(std::uint32_t a, std::uint32_t b, std::uint32_t c)
{
    for (unsigned i = 0; i < 2; ++i) {
        c += half_of<A>(a, i) * byte_of<B>(b, i + (high ? 2 : 0));
    }
    return c;
}

/// Calls f<A, B>() with the unsigned or signed variant of two types.
template <typename Unsigned, typename Signed, typename UnsignedB, typename SignedB, typename F>
void visit_signs(bool a_signed, bool b_signed, F f)
{
    if (a_signed) {
        b_signed ? f.template operator()<Signed, SignedB>() : f.template operator()<Signed, UnsignedB>();
    } else {
        b_signed ? f.template operator()<Unsigned, SignedB>() : f.template operator()<Unsigned, UnsignedB>();
    }
}

[[nodiscard]] std::pair<Type, Type> require_dot_types(Decoder& decoder)
{
    const Type a = decoder.require_type();
    const Type b = decoder.require_type();
    for (const Type type : {a, b}) {
        if (type != Type::u32 && type != Type::s32) {
            fail_type(decoder, type);
        }
    }
    return {a, b};
}

void decode_dp4a(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const auto [a, b] = require_dot_types(decoder);
    const Type sum = is_signed(a) || is_signed(b) ? Type::s32 : Type::u32;
    decode_rows(decoder, operation, sum, {a, b, sum});
    visit_signs<std::uint8_t, std::int8_t, std::uint8_t, std::int8_t>(
        is_signed(a), is_signed(b), [&]<typename A, typename B>() {
            using U = std::uint32_t;
            operation.execute = lanewise<U, U, U, U>([](U x, U y, U z) { return dot4<A, B>(x, y, z); });
        });
}

void decode_dp2a(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const std::string_view half = decoder.take_one_of({"lo", "hi"});
    if (half.empty()) {
        decoder.fail("needs .lo or .hi");
    }
    const auto [a, b] = require_dot_types(decoder);
    const Type sum = is_signed(a) || is_signed(b) ? Type::s32 : Type::u32;
    decode_rows(decoder, operation, sum, {a, b, sum});
    visit_signs<std::uint16_t, std::int16_t, std::uint8_t, std::int8_t>(
        is_signed(a), is_signed(b), [&]<typename A, typename B>() {
            using U = std::uint32_t;
            operation.execute = half == "hi"
                                    ? lanewise<U, U, U, U>([](U x, U y, U z) { return dot2<true, A, B>(x, y, z); })
                                    : lanewise<U, U, U, U>([](U x, U y, U z) { return dot2<false, A, B>(x, y, z); });
        });
}

constexpr InstructionEntry arithmetic[] = {
    {"add", decode_add_sub<false>},
    {"sub", decode_add_sub<true>},
    {"mul", decode_mul},
    {"mad", decode_mad},
    {"mul24", decode_mul24<false>},
    {"mad24", decode_mul24<true>},
    {"div", decode_division<false>},
    {"rem", decode_division<true>},
    {"abs", decode_abs_neg<false>},
    {"neg", decode_abs_neg<true>},
    {"sad", decode_sad},
    {"min", decode_min_max<false>},
    {"max", decode_min_max<true>},
    {"dp4a", decode_dp4a},
    {"dp2a", decode_dp2a},
};

}  // namespace

std::span<const InstructionEntry> integer_instructions()
{
    static const std::vector<InstructionEntry> all = join_tables(
        {arithmetic, carry_instructions(), bit_instructions(), comparison_instructions(), video_instructions()});
    return all;
}

}  // namespace tessera::emulator
