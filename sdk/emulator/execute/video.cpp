// Video instructions: arithmetic on bytes and half-words of 32-bit registers (PTX ISA 9.7.17 "Video Instructions").
// Rare in new code, so they are written for clarity, not speed.

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "execute/lanewise.hpp"

namespace tessera::emulator {

using ptx::Type;

namespace {

__extension__ using Wide = __int128;  // products, sums and shifts before truncation
using U32 = std::uint32_t;

enum class VideoOp : std::uint8_t { add, sub, absdiff, min, max, shl, shr, average, set };
enum class Second : std::uint8_t { none, add, min, max };
enum class Comparison : std::uint8_t { eq, ne, lt, le, gt, ge };

/// Part of a register: `bits` from bit `first` on.
struct Part {
    unsigned first = 0, bits = 32;
};

[[nodiscard]] Wide extract(U32 word, Part part, bool is_signed)
{
    const auto field = static_cast<U32>((word >> part.first) & ((std::uint64_t{1} << part.bits) - 1));
    if (is_signed && (field >> (part.bits - 1) & 1) != 0) {
        return Wide{field} - (Wide{1} << part.bits);
    }
    return Wide{field};
}

[[nodiscard]] Wide clamp_to(Wide value, unsigned bits, bool is_signed)
{
    const Wide low = is_signed ? -(Wide{1} << (bits - 1)) : Wide{0};
    const Wide high = is_signed ? (Wide{1} << (bits - 1)) - 1 : (Wide{1} << bits) - 1;
    return std::clamp(value, low, high);
}

[[nodiscard]] bool compare(Wide a, Wide b, Comparison how)
{
    switch (how) {
        case Comparison::eq: return a == b;
        case Comparison::ne: return a != b;
        case Comparison::lt: return a < b;
        case Comparison::le: return a <= b;
        case Comparison::gt: return a > b;
        case Comparison::ge: break;
    }
    return how == Comparison::ge && a >= b;
}

struct VideoPayload : Payload {
    VideoOp op{};
    Second second = Second::none;
    Comparison comparison{};
    bool saturate = false, wrap = false;
    bool d_signed = false, a_signed = false, b_signed = false;
    // Scalar forms.
    Part a, b, d;
    bool merge = false;
    // SIMD forms.
    unsigned elements = 1;
    std::array<std::uint8_t, 4> a_select{}, b_select{};  ///< of each element, lowest first: index into {b, a}
    unsigned mask = 0;                                   ///< elements of d that are written

    [[nodiscard]] Wide apply(Wide x, Wide y) const
    {
        switch (op) {
            case VideoOp::add: return x + y;
            case VideoOp::sub: return x - y;
            case VideoOp::absdiff: return x < y ? y - x : x - y;
            case VideoOp::min: return std::min(x, y);
            case VideoOp::max: return std::max(x, y);
            case VideoOp::average: return x + y >= 0 ? (x + y + 1) >> 1 : (x + y) >> 1;
            case VideoOp::set: return compare(x, y, comparison) ? 1 : 0;
            case VideoOp::shl:
            case VideoOp::shr: break;
        }
        const auto amount = static_cast<int>(wrap ? y & 31 : std::min<Wide>(y, 32));
        return op == VideoOp::shl ? x * (Wide{1} << amount) : x >> amount;
    }
};

// --- scalar ---

[[nodiscard]] U32 scalar(const VideoPayload& p, U32 a, U32 b, U32 c)
{
    Wide value = p.apply(extract(a, p.a, p.a_signed), extract(b, p.b, p.b_signed));
    if (p.saturate) {
        value = clamp_to(value, p.d.bits, p.d_signed);
    }
    auto result = static_cast<U32>(value);
    if (p.merge) {
        const auto mask = static_cast<U32>(((std::uint64_t{1} << p.d.bits) - 1) << p.d.first);
        return (c & ~mask) | ((result << p.d.first) & mask);
    }
    const bool less = p.d_signed ? static_cast<std::int32_t>(result) < static_cast<std::int32_t>(c) : result < c;
    switch (p.second) {
        case Second::none: return result;
        case Second::add: return result + c;
        case Second::min: return less ? result : c;
        case Second::max: break;
    }
    return less ? c : result;
}

[[nodiscard]] Part part_of(const Decoder& decoder, const ptx::Operand& operand)
{
    const std::string& name = operand.component;
    if (name.empty()) {
        return {};
    }
    if (name.size() == 2 && name[0] == 'b' && name[1] >= '0' && name[1] <= '3') {
        return {8 * static_cast<unsigned>(name[1] - '0'), 8};
    }
    if (name.size() == 2 && name[0] == 'h' && name[1] >= '0' && name[1] <= '1') {
        return {16 * static_cast<unsigned>(name[1] - '0'), 16};
    }
    decoder.fail("the selector ." + name + " is none of .b0 .b1 .b2 .b3 .h0 .h1");
}

[[nodiscard]] Type require_word_type(Decoder& decoder)
{
    const Type type = decoder.require_type();
    if (type != Type::u32 && type != Type::s32) {
        fail_type(decoder, type);
    }
    return type;
}

[[nodiscard]] Comparison require_comparison(Decoder& decoder)
{
    constexpr std::array<std::string_view, 6> names{"eq", "ne", "lt", "le", "gt", "ge"};
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (decoder.take(names[i])) {
            return static_cast<Comparison>(i);
        }
    }
    decoder.fail("needs .eq .ne .lt .le .gt or .ge");
}

/// Types in the order of the text: d (not for vset), a, b.
void take_types(Decoder& decoder, VideoPayload& payload)
{
    if (payload.op == VideoOp::set) {
        payload.comparison = require_comparison(decoder);
    } else {
        payload.d_signed = is_signed(require_word_type(decoder));
    }
    payload.a_signed = is_signed(require_word_type(decoder));
    payload.b_signed = is_signed(require_word_type(decoder));
}

template <VideoOp op>
void decode_scalar(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    auto& payload = decoder.emplace_payload<VideoPayload>();
    payload.op = op;
    take_types(decoder, payload);
    if (op == VideoOp::shl || op == VideoOp::shr) {
        const std::string_view mode = decoder.take_one_of({"clamp", "wrap"});
        if (mode.empty()) {
            decoder.fail("needs .clamp or .wrap");
        }
        payload.wrap = mode == "wrap";
        if (payload.b_signed) {
            decoder.fail("the shift amount is of type .u32");
        }
    }
    payload.saturate = op != VideoOp::set && decoder.take("sat");
    const std::string_view second = decoder.take_one_of({"add", "min", "max"});
    payload.second = second == "add"   ? Second::add
                     : second == "min" ? Second::min
                     : second == "max" ? Second::max
                                       : Second::none;
    payload.d = part_of(decoder, decoder.operand(0));
    payload.a = part_of(decoder, decoder.operand(1));
    payload.b = part_of(decoder, decoder.operand(2));
    payload.merge = payload.d.bits != 32;
    if (payload.merge && payload.second != Second::none) {
        decoder.fail("a destination selector and a second operation exclude each other");
    }
    const bool needs_c = payload.merge || payload.second != Second::none;
    if (needs_c || decoder.operands() == 4) {  // c may be given although it is unused
        decode_rows(decoder, operation, Type::b32, {Type::b32, Type::b32, Type::b32});
    } else {
        decode_rows(decoder, operation, Type::b32, {Type::b32, Type::b32});
        operation.operand[3] = decoder.constant_row(0, Type::b32);
    }
    operation.execute = lanewise_with<VideoPayload, U32, U32, U32, U32>(
        [](const VideoPayload& p, U32 a, U32 b, U32 c) { return scalar(p, a, b, c); });
}

// --- SIMD ---

template <unsigned elements>
[[nodiscard]] U32 simd(const VideoPayload& p, U32 a, U32 b, U32 c)
{
    constexpr unsigned bits = 32 / elements;
    constexpr U32 ones = (U32{1} << bits) - 1;
    const std::uint64_t both = std::uint64_t{b} << 32 | a;
    const bool accumulate = p.second == Second::add;
    U32 result = accumulate ? c : 0;
    for (unsigned i = 0; i < elements; ++i) {
        const bool written = (p.mask >> i & 1) != 0;
        const auto x = static_cast<U32>(both >> (bits * p.a_select[i])) & ones;
        const auto y = static_cast<U32>(both >> (bits * p.b_select[i])) & ones;
        Wide value = p.apply(extract(x, {0, bits}, p.a_signed), extract(y, {0, bits}, p.b_signed));
        if (p.saturate) {
            value = clamp_to(value, bits, p.d_signed);
        }
        if (accumulate) {
            result += written ? static_cast<U32>(value) : 0;
        } else {
            result |= written ? (static_cast<U32>(value) & ones) << (bits * i) : c & (ones << (bits * i));
        }
    }
    return result;
}

/// ".h10", ".b7654": the highest element first. `fallback` is used if there is no selector.
template <unsigned elements>
[[nodiscard]] std::array<std::uint8_t, 4> selection(const Decoder& decoder, const ptx::Operand& operand,
                                                    std::uint8_t fallback)
{
    std::array<std::uint8_t, 4> result{};
    const std::string& name = operand.component;
    for (unsigned i = 0; i < elements; ++i) {
        result[i] = static_cast<std::uint8_t>(fallback + i);
    }
    if (name.empty()) {
        return result;
    }
    const char prefix = elements == 2 ? 'h' : 'b';
    if (name.size() != 1 + elements || name[0] != prefix) {
        decoder.fail("the selector ." + name + " does not name " + std::to_string(elements) + " elements");
    }
    for (unsigned i = 0; i < elements; ++i) {
        const char digit = name[elements - i];
        if (digit < '0' || digit >= static_cast<char>('0' + 2 * elements)) {
            decoder.fail("the selector ." + name + " names an element that does not exist");
        }
        result[i] = static_cast<std::uint8_t>(digit - '0');
    }
    return result;
}

template <unsigned elements>
[[nodiscard]] unsigned element_mask(const Decoder& decoder, const ptx::Operand& operand)
{
    const std::string& name = operand.component;
    if (name.empty()) {
        return (1u << elements) - 1;
    }
    unsigned mask = 0;
    for (const char digit : name.substr(1)) {
        if (digit < '0' || digit >= static_cast<char>('0' + elements)) {
            decoder.fail("the mask ." + name + " names an element that does not exist");
        }
        mask |= 1u << (digit - '0');
    }
    return mask;
}

template <VideoOp op, unsigned elements>
void decode_simd(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    auto& payload = decoder.emplace_payload<VideoPayload>();
    payload.op = op;
    take_types(decoder, payload);
    payload.saturate = op != VideoOp::set && decoder.take("sat");
    payload.second = decoder.take("add") ? Second::add : Second::none;
    if (payload.saturate && payload.second == Second::add) {
        decoder.fail(".sat and .add exclude each other");
    }
    payload.elements = elements;
    payload.mask = element_mask<elements>(decoder, decoder.operand(0));
    payload.a_select = selection<elements>(decoder, decoder.operand(1), 0);
    payload.b_select = selection<elements>(decoder, decoder.operand(2), elements);
    decode_rows(decoder, operation, Type::b32, {Type::b32, Type::b32, Type::b32});
    operation.execute = lanewise_with<VideoPayload, U32, U32, U32, U32>(
        [](const VideoPayload& p, U32 a, U32 b, U32 c) { return simd<elements>(p, a, b, c); });
}

// --- vmad ---

struct MultiplyAdd : Payload {
    Part a, b;
    bool a_signed = false, b_signed = false, final_signed = false;
    bool negate_product = false, negate_addend = false, plus_one = false, saturate = false;
    unsigned shift = 0;
};

[[nodiscard]] U32 multiply_add(const MultiplyAdd& p, U32 a, U32 b, U32 c)
{
    const Wide product = extract(a, p.a, p.a_signed) * extract(b, p.b, p.b_signed);
    const Wide addend = extract(c, {}, p.final_signed && !p.negate_addend);
    // The addend is complemented in 32 bits before it is extended.
    const Wide complement = extract(~c, {}, true) + 1;
    const Wide sum =
        (p.negate_product ? -product : product) + (p.negate_addend ? complement : addend) + (p.plus_one ? 1 : 0);
    const Wide shifted = sum >> p.shift;
    const Wide cut =
        p.final_signed ? Wide{static_cast<std::int64_t>(shifted)} : Wide{static_cast<std::uint64_t>(shifted)};
    return static_cast<U32>(p.saturate ? clamp_to(cut, 32, p.final_signed) : cut);
}

void decode_vmad(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    auto& payload = decoder.emplace_payload<MultiplyAdd>();
    (void)require_word_type(decoder);
    payload.a_signed = is_signed(require_word_type(decoder));
    payload.b_signed = is_signed(require_word_type(decoder));
    payload.plus_one = decoder.take("po");
    payload.saturate = decoder.take("sat");
    const std::string_view scale = decoder.take_one_of({"shr7", "shr15"});
    payload.shift = scale == "shr7" ? 7 : scale == "shr15" ? 15 : 0;
    expect_operands(decoder, 4);
    std::array<ptx::Operand, 3> sources{decoder.operand(1), decoder.operand(2), decoder.operand(3)};
    const bool constant_c = sources[2].kind == ptx::Operand::Kind::integer;
    payload.negate_product = sources[0].negated != sources[1].negated;
    payload.negate_addend = sources[2].negated && !constant_c;
    if (payload.plus_one + payload.negate_product + payload.negate_addend > 1) {
        decoder.fail("only one of .po, a negated product and a negated addend can be used");
    }
    if (!decoder.operand(0).component.empty()) {
        decoder.fail("the destination of vmad has no selector");
    }
    payload.final_signed = payload.a_signed || payload.b_signed || payload.negate_product || payload.negate_addend;
    payload.a = part_of(decoder, sources[0]);
    payload.b = part_of(decoder, sources[1]);
    operation.operand[0] = decoder.write(0, Type::b32);
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (sources[i].kind != ptx::Operand::Kind::integer) {
            sources[i].negated = false;
        }
        operation.operand[i + 1] = decoder.read(sources[i], Type::b32);
    }
    operation.execute = lanewise_with<MultiplyAdd, U32, U32, U32, U32>(
        [](const MultiplyAdd& p, U32 a, U32 b, U32 c) { return multiply_add(p, a, b, c); });
}

constexpr InstructionEntry entries[] = {
    {"vadd", decode_scalar<VideoOp::add>},
    {"vsub", decode_scalar<VideoOp::sub>},
    {"vabsdiff", decode_scalar<VideoOp::absdiff>},
    {"vmin", decode_scalar<VideoOp::min>},
    {"vmax", decode_scalar<VideoOp::max>},
    {"vshl", decode_scalar<VideoOp::shl>},
    {"vshr", decode_scalar<VideoOp::shr>},
    {"vset", decode_scalar<VideoOp::set>},
    {"vmad", decode_vmad},
    {"vadd2", decode_simd<VideoOp::add, 2>},
    {"vsub2", decode_simd<VideoOp::sub, 2>},
    {"vabsdiff2", decode_simd<VideoOp::absdiff, 2>},
    {"vmin2", decode_simd<VideoOp::min, 2>},
    {"vmax2", decode_simd<VideoOp::max, 2>},
    {"vavrg2", decode_simd<VideoOp::average, 2>},
    {"vset2", decode_simd<VideoOp::set, 2>},
    {"vadd4", decode_simd<VideoOp::add, 4>},
    {"vsub4", decode_simd<VideoOp::sub, 4>},
    {"vabsdiff4", decode_simd<VideoOp::absdiff, 4>},
    {"vmin4", decode_simd<VideoOp::min, 4>},
    {"vmax4", decode_simd<VideoOp::max, 4>},
    {"vavrg4", decode_simd<VideoOp::average, 4>},
    {"vset4", decode_simd<VideoOp::set, 4>},
};

}  // namespace

std::span<const InstructionEntry> video_instructions() { return entries; }

}  // namespace tessera::emulator
