// Logic, shifts and bit fields (PTX ISA 9.7.8 "Logic and Shift Instructions", and the bit operations of 9.7.1).

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "execute/lanewise.hpp"

namespace tessera::emulator {

using ptx::Type;

namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

/// Reads .pred or .b16 .b32 .b64; other types fail.
[[nodiscard]] Type require_bits_or_pred(Decoder& decoder)
{
    const Type type = decoder.require_type();
    if (type != Type::pred && type != Type::b16 && type != Type::b32 && type != Type::b64) {
        fail_type(decoder, type);
    }
    return type;
}

[[nodiscard]] Type require_one_of(Decoder& decoder, std::initializer_list<Type> types)
{
    const Type type = decoder.require_type();
    if (std::find(types.begin(), types.end(), type) == types.end()) {
        fail_type(decoder, type);
    }
    return type;
}

// --- and, or, xor, not, cnot ---

struct PredicatePair : Payload {
    Decoder::Predicate a, b;
};

struct And {
    template <typename T>
    constexpr T operator()(T a, T b) const
    {
        return static_cast<T>(a & b);
    }
};
struct Or {
    template <typename T>
    constexpr T operator()(T a, T b) const
    {
        return static_cast<T>(a | b);
    }
};
struct Xor {
    template <typename T>
    constexpr T operator()(T a, T b) const
    {
        return static_cast<T>(a ^ b);
    }
};

template <typename F>
Step combine_predicates(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& pair = operation.as<PredicatePair>();
    warp.set_predicate(operation.operand[0], active, F{}(warp.predicate(pair.a), warp.predicate(pair.b)));
    return Step::next;
}

template <typename F>
void decode_logic(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    if constexpr (std::is_same_v<F, And>) {
        decoder.effects().flow = ValueFlow::conjunction;
    } else if constexpr (std::is_same_v<F, Or>) {
        decoder.effects().flow = ValueFlow::disjunction;
    }
    const Type type = require_bits_or_pred(decoder);
    if (type == Type::pred) {
        expect_operands(decoder, 3);
        operation.operand[0] = decoder.write(0, Type::pred);
        auto& pair = decoder.emplace_payload<PredicatePair>();
        pair.a = decoder.read_predicate(1);
        pair.b = decoder.read_predicate(2);
        operation.execute = combine_predicates<F>;
        return;
    }
    decode_rows(decoder, operation, type, {type, type});
    visit_bits(ptx::size_of(type), [&]<typename T>() { operation.execute = lanewise<T, T, T>(F{}); });
}

void decode_not(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const Type type = require_bits_or_pred(decoder);
    if (type == Type::pred) {
        expect_operands(decoder, 2);
        operation.operand[0] = decoder.write(0, Type::pred);
        decoder.emplace_payload<PredicatePair>().a = decoder.read_predicate(1);
        operation.execute = [](Warp& warp, const Operation& op, LaneMask active) -> Step {
            warp.set_predicate(op.operand[0], active, ~warp.predicate(op.as<PredicatePair>().a));
            return Step::next;
        };
        return;
    }
    decode_rows(decoder, operation, type, {type});
    visit_bits(ptx::size_of(type),
               [&]<typename T>() { operation.execute = lanewise<T, T>([](T a) { return static_cast<T>(~a); }); });
}

void decode_cnot(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const Type type = require_one_of(decoder, {Type::b16, Type::b32, Type::b64});
    decode_rows(decoder, operation, type, {type});
    visit_bits(ptx::size_of(type), [&]<typename T>() {
        operation.execute = lanewise<T, T>([](T a) { return static_cast<T>(a == 0 ? 1 : 0); });
    });
}

// --- lop3 ---

/// Bit i of the table is the result for the bits of i as (a, b, c); a is the highest bit.
struct Lookup : Payload {
    std::array<U32, 8> minterm{};  ///< all ones where the table has a one
    bool use_or = false;           ///< .or, else .and
    Decoder::Predicate predicate;

    [[nodiscard]] U32 operator()(U32 a, U32 b, U32 c) const
    {
        const U32 high = (b & ((c & minterm[7]) | (~c & minterm[6]))) | (~b & ((c & minterm[5]) | (~c & minterm[4])));
        const U32 low = (b & ((c & minterm[3]) | (~c & minterm[2]))) | (~b & ((c & minterm[1]) | (~c & minterm[0])));
        return (a & high) | (~a & low);
    }
};

Step lookup(Warp& warp, const Operation& operation, LaneMask active)
{
    const Lookup table = operation.as<Lookup>();
    map_lanes(
        active, [&table](U32 a, U32 b, U32 c) { return table(a, b, c); }, warp.row<U32>(operation.operand[0]),
        static_cast<const U32*>(warp.row<U32>(operation.operand[1])),
        static_cast<const U32*>(warp.row<U32>(operation.operand[2])),
        static_cast<const U32*>(warp.row<U32>(operation.operand[3])));
    return Step::next;
}

/// lop3.and/.or d|p, a, b, c, table, q: also p = (d != 0) and/or q.
Step lookup_with_predicate(Warp& warp, const Operation& operation, LaneMask active)
{
    lookup(warp, operation, active);
    const auto& table = operation.as<Lookup>();
    const LaneMask nonzero =
        test_lanes([](U32 d) { return d != 0; }, static_cast<const U32*>(warp.row<U32>(operation.operand[0])));
    const LaneMask q = warp.predicate(table.predicate);
    warp.set_predicate(operation.operand[4], active, table.use_or ? nonzero | q : nonzero & q);
    return Step::next;
}

void decode_lop3(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const std::string_view combine = decoder.take_one_of({"or", "and"});
    (void)require_one_of(decoder, {Type::b32});
    expect_operands(decoder, combine.empty() ? 5 : 6);
    const auto table = decoder.constant(4);
    if (!table || *table < 0 || *table > 255) {
        decoder.fail("the lookup table must be a constant from 0 to 255");
    }
    auto& payload = decoder.emplace_payload<Lookup>();
    for (unsigned i = 0; i < 8; ++i) {
        payload.minterm[i] = (*table >> i & 1) != 0 ? ~U32{0} : U32{0};
    }
    operation.operand[0] = decoder.write(0, Type::b32);
    for (std::size_t i = 1; i < 4; ++i) {
        operation.operand[i] = decoder.read(i, Type::b32);
    }
    operation.execute = lookup;
    if (!combine.empty()) {
        payload.use_or = combine == "or";
        operation.operand[4] = decoder.write_second(0);
        payload.predicate = decoder.read_predicate(5);
        if (operation.operand[4] == no_row) {
            decoder.fail("lop3 with ." + std::string(combine) + " needs a predicate as second destination: d|p");
        }
        operation.execute = lookup_with_predicate;
    }
}

// --- shl, shr, shf ---

void decode_shl(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const Type type = require_one_of(decoder, {Type::b16, Type::b32, Type::b64});
    decode_rows(decoder, operation, type, {type, Type::u32});
    visit_bits(ptx::size_of(type), [&]<typename T>() {
        operation.execute = lanewise<T, T, U32>(
            [](T a, U32 n) { return n < 8 * sizeof(T) ? static_cast<T>(static_cast<Wrapping<T>>(a) << n) : T{0}; });
    });
}

void decode_shr(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const Type named = decoder.require_type();
    const Type type = named == Type::b16   ? Type::u16
                      : named == Type::b32 ? Type::u32
                      : named == Type::b64 ? Type::u64
                                           : named;
    decode_rows(decoder, operation, type, {type, Type::u32});
    const bool known = visit_integer(type, [&]<typename T>() {
        operation.execute = lanewise<T, T, U32>([](T a, U32 n) {
            if constexpr (std::is_signed_v<T>) {
                return static_cast<T>(a >> std::min<U32>(n, 8 * sizeof(T) - 1));  // larger shifts fill with the sign
            } else {
                return n < 8 * sizeof(T) ? static_cast<T>(a >> n) : T{0};
            }
        });
    });
    if (!known) {
        fail_type(decoder, named);
    }
}

template <bool left, bool clamp>
constexpr U32 funnel_shift(U32 a, U32 b, U32 c)
{
    const U32 n = clamp ? std::min<U32>(c, 32) : c & 31;
    const U64 both = U64{b} << 32 | a;
    return static_cast<U32>(left ? (both << n) >> 32 : both >> n);
}

void decode_shf(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const std::string_view direction = decoder.take_one_of({"l", "r"});
    const std::string_view mode = decoder.take_one_of({"clamp", "wrap"});
    (void)require_one_of(decoder, {Type::b32});
    if (direction.empty() || mode.empty()) {
        decoder.fail("needs .l or .r, and .clamp or .wrap");
    }
    decode_rows(decoder, operation, Type::b32, {Type::b32, Type::b32, Type::u32});
    const bool left = direction == "l";
    if (mode == "clamp") {
        operation.execute =
            left ? lanewise<U32, U32, U32, U32>([](U32 a, U32 b, U32 c) { return funnel_shift<true, true>(a, b, c); })
                 : lanewise<U32, U32, U32, U32>([](U32 a, U32 b, U32 c) { return funnel_shift<false, true>(a, b, c); });
    } else {
        operation.execute =
            left
                ? lanewise<U32, U32, U32, U32>([](U32 a, U32 b, U32 c) { return funnel_shift<true, false>(a, b, c); })
                : lanewise<U32, U32, U32, U32>([](U32 a, U32 b, U32 c) { return funnel_shift<false, false>(a, b, c); });
    }
}

// --- counts and positions ---

void decode_popc(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const Type type = require_one_of(decoder, {Type::b32, Type::b64});
    decode_rows(decoder, operation, Type::u32, {type});
    visit_bits(ptx::size_of(type), [&]<typename T>() {
        operation.execute = lanewise<U32, T>([](T a) { return static_cast<U32>(std::popcount(a)); });
    });
}

void decode_clz(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const Type type = require_one_of(decoder, {Type::b32, Type::b64});
    decode_rows(decoder, operation, Type::u32, {type});
    visit_bits(ptx::size_of(type), [&]<typename T>() {
        operation.execute = lanewise<U32, T>([](T a) { return static_cast<U32>(std::countl_zero(a)); });
    });
}

template <bool shift_amount, typename T>
constexpr U32 find_leading(T value)
{
    using U = std::make_unsigned_t<T>;
    const auto bits = static_cast<U>(value < 0 ? ~value : value);
    const auto zeros = static_cast<U32>(std::countl_zero(bits));
    return bits == 0 ? ~U32{0} : shift_amount ? zeros : static_cast<U32>(8 * sizeof(T) - 1) - zeros;
}

void decode_bfind(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const bool shift_amount = decoder.take("shiftamt");
    const Type type = require_one_of(decoder, {Type::u32, Type::u64, Type::s32, Type::s64});
    decode_rows(decoder, operation, Type::u32, {type});
    visit_integer(type, [&]<typename T>() {
        operation.execute = shift_amount ? lanewise<U32, T>([](T a) { return find_leading<true>(a); })
                                         : lanewise<U32, T>([](T a) { return find_leading<false>(a); });
    });
}

/// Position of the `offset`-th set bit at or above (offset > 0) or at or below (offset < 0) `base`.
constexpr U32 find_nth_set(U32 mask, U32 base, std::int32_t offset)
{
    base &= 31;
    if (offset == 0) {
        return (mask >> base & 1) != 0 ? base : ~U32{0};
    }
    U32 count = offset > 0 ? static_cast<U32>(offset) : 0 - static_cast<U32>(offset);
    const int step = offset > 0 ? 1 : -1;
    for (int position = static_cast<int>(base); position >= 0 && position < 32; position += step) {
        if ((mask >> position & 1) != 0 && --count == 0) {
            return static_cast<U32>(position);
        }
    }
    return ~U32{0};
}

Step find_nth_set_lanes(Warp& warp, const Operation& operation, LaneMask active)
{
    const U32* const base = warp.row<U32>(operation.operand[2]);
    const LaneMask beyond = active & test_lanes([](U32 b) { return b > 31; }, base);
    if (beyond != 0 && warp.checks()) {
        warp.report(operation, FindingKind::invalid_operand, beyond,
                    "fns with a base above 31 is not defined: mask the base with 31");
    }
    map_lanes(active, find_nth_set, warp.row<U32>(operation.operand[0]),
              static_cast<const U32*>(warp.row<U32>(operation.operand[1])), base,
              static_cast<const std::int32_t*>(warp.row<std::int32_t>(operation.operand[3])));
    return Step::next;
}

void decode_fns(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    (void)require_one_of(decoder, {Type::b32});
    decode_rows(decoder, operation, Type::b32, {Type::b32, Type::b32, Type::s32});
    operation.execute = find_nth_set_lanes;
}

template <typename T>
constexpr T reverse_bits(T value)
{
    T result = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i) {
        result = static_cast<T>(result << 1 | (value >> i & 1));
    }
    return result;
}

void decode_brev(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const Type type = require_one_of(decoder, {Type::b32, Type::b64});
    decode_rows(decoder, operation, type, {type});
    visit_bits(ptx::size_of(type),
               [&]<typename T>() { operation.execute = lanewise<T, T>([](T a) { return reverse_bits(a); }); });
}

// --- bit fields ---

/// Ones in the lowest `length` bits; all ones if `length` is the width or more.
template <typename T>
constexpr T low_ones(U32 length)
{
    return length < 8 * sizeof(T) ? static_cast<T>((T{1} << length) - 1) : static_cast<T>(~T{0});
}

template <typename T>
constexpr T extract_field(T value, U32 position, U32 length)
{
    using U = std::make_unsigned_t<T>;
    constexpr U32 width = 8 * sizeof(T);
    position &= 0xFF;
    length &= 0xFF;
    const U bits = position < width ? static_cast<U>(static_cast<U>(value) >> position) : U{0};
    U field = static_cast<U>(bits & low_ones<U>(length));
    if (std::is_signed_v<T> && length != 0) {
        const U32 sign_position = std::min(position + length - 1, width - 1);
        const bool sign = (static_cast<U>(value) >> sign_position & 1) != 0;
        const U32 taken = position < width ? std::min(length, width - position) : 0;
        field = sign ? static_cast<U>(field | ~low_ones<U>(taken)) : field;
    }
    return static_cast<T>(field);
}

void decode_bfe(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const Type type = require_one_of(decoder, {Type::u32, Type::u64, Type::s32, Type::s64});
    decode_rows(decoder, operation, type, {type, Type::u32, Type::u32});
    visit_integer(type, [&]<typename T>() {
        operation.execute = lanewise<T, T, U32, U32>([](T a, U32 b, U32 c) { return extract_field(a, b, c); });
    });
}

template <typename T>
constexpr T insert_field(T field, T into, U32 position, U32 length)
{
    position &= 0xFF;
    length &= 0xFF;
    if (position >= 8 * sizeof(T)) {
        return into;
    }
    const auto mask = static_cast<T>(low_ones<T>(length) << position);
    return static_cast<T>((into & ~mask) | ((field << position) & mask));
}

void decode_bfi(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    decoder.effects().flow = ValueFlow::inserted;
    const Type type = require_one_of(decoder, {Type::b32, Type::b64});
    decode_rows(decoder, operation, type, {type, type, Type::u32, Type::u32});
    visit_bits(ptx::size_of(type), [&]<typename T>() {
        if constexpr (sizeof(T) >= 4) {
            operation.execute =
                lanewise<T, T, T, U32, U32>([](T a, T b, U32 c, U32 d) { return insert_field(a, b, c, d); });
        }
    });
}

/// `width` ones, from bit `position` on.
template <bool clamp>
constexpr U32 bit_mask(U32 position, U32 width)
{
    if (clamp && position > 31) {
        return 0;
    }
    const U32 first = position & 31;
    const U32 count = clamp ? std::min<U32>(width, 32) : width & 31;
    return static_cast<U32>(low_ones<U64>(count) << first);
}

void decode_bmsk(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const std::string_view mode = decoder.take_one_of({"clamp", "wrap"});
    (void)require_one_of(decoder, {Type::b32});
    if (mode.empty()) {
        decoder.fail("needs .clamp or .wrap");
    }
    decode_rows(decoder, operation, Type::b32, {Type::u32, Type::u32});
    operation.execute = mode == "clamp" ? lanewise<U32, U32, U32>([](U32 a, U32 b) { return bit_mask<true>(a, b); })
                                        : lanewise<U32, U32, U32>([](U32 a, U32 b) { return bit_mask<false>(a, b); });
}

/// The lowest `bits` bits of a, sign- or zero-extended.
template <bool clamp, typename T>
constexpr T extend(T value, U32 bits)
{
    const U32 count = clamp ? std::min<U32>(bits, 32) : bits & 31;
    return extract_field<T>(value, 0, count);
}

void decode_szext(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const std::string_view mode = decoder.take_one_of({"clamp", "wrap"});
    const Type type = require_one_of(decoder, {Type::u32, Type::s32});
    if (mode.empty()) {
        decoder.fail("needs .clamp or .wrap");
    }
    decode_rows(decoder, operation, type, {type, Type::u32});
    visit_integer(type, [&]<typename T>() {
        operation.execute = mode == "clamp" ? lanewise<T, T, U32>([](T a, U32 b) { return extend<true>(a, b); })
                                            : lanewise<T, T, U32>([](T a, U32 b) { return extend<false>(a, b); });
    });
}

// --- prmt ---

/// Bytes 0-3 are a's, 4-7 are b's. Four selectors of 4 bits; bit 3 selects the sign of the byte instead.
constexpr U32 permute(U32 a, U32 b, U32 selectors)
{
    const U64 bytes = U64{b} << 32 | a;
    U32 result = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const U32 selector = selectors >> (4 * i);
        U32 byte = static_cast<U32>(bytes >> (8 * (selector & 7))) & 0xFF;
        if ((selector & 8) != 0) {
            byte = (byte & 0x80) != 0 ? 0xFFu : 0u;
        }
        result |= byte << (8 * i);
    }
    return result;
}

/// The selectors of a prmt mode for each value of the lowest two bits of its control (PTX ISA 9.7.9.7 "prmt", table of
/// modes).
struct PermuteMode : Payload {
    std::array<U32, 4> selectors{};
};

[[nodiscard]] std::optional<std::array<U32, 4>> selectors_of(std::string_view mode)
{
    if (mode == "f4e") {
        return std::array<U32, 4>{0x3210, 0x4321, 0x5432, 0x6543};
    }
    if (mode == "b4e") {
        return std::array<U32, 4>{0x5670, 0x6701, 0x7012, 0x0123};
    }
    if (mode == "rc8") {
        return std::array<U32, 4>{0x0000, 0x1111, 0x2222, 0x3333};
    }
    if (mode == "ecl") {
        return std::array<U32, 4>{0x3210, 0x3211, 0x3222, 0x3333};
    }
    if (mode == "ecr") {
        return std::array<U32, 4>{0x0000, 0x1110, 0x2210, 0x3210};
    }
    if (mode == "rc16") {
        return std::array<U32, 4>{0x1010, 0x3232, 0x1010, 0x3232};
    }
    return std::nullopt;
}

void decode_prmt(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    const std::string_view mode = decoder.take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
    (void)require_one_of(decoder, {Type::b32});
    decode_rows(decoder, operation, Type::b32, {Type::b32, Type::b32, Type::b32});
    if (mode.empty()) {
        operation.execute = lanewise<U32, U32, U32, U32>([](U32 a, U32 b, U32 c) { return permute(a, b, c); });
        return;
    }
    decoder.emplace_payload<PermuteMode>().selectors = *selectors_of(mode);
    operation.execute = lanewise_with<PermuteMode, U32, U32, U32, U32>(
        [](const PermuteMode& p, U32 a, U32 b, U32 c) { return permute(a, b, p.selectors[c & 3]); });
}

constexpr InstructionEntry entries[] = {
    {"and", decode_logic<And>}, {"or", decode_logic<Or>}, {"xor", decode_logic<Xor>}, {"not", decode_not},
    {"cnot", decode_cnot},      {"lop3", decode_lop3},    {"shl", decode_shl},        {"shr", decode_shr},
    {"shf", decode_shf},        {"popc", decode_popc},    {"clz", decode_clz},        {"bfind", decode_bfind},
    {"fns", decode_fns},        {"brev", decode_brev},    {"bfe", decode_bfe},        {"bfi", decode_bfi},
    {"bmsk", decode_bmsk},      {"szext", decode_szext},  {"prmt", decode_prmt},
};

}  // namespace

std::span<const InstructionEntry> bit_instructions() { return entries; }

}  // namespace tessera::emulator
