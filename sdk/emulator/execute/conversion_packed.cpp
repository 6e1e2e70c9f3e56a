// cvt of packed values: f16x2, bf16x2, and the 8-, 6- and 4-bit formats (PTX ISA 9.7.9.21 "cvt", 9.7.9.22 "cvt.pack").

#include <algorithm>
#include <array>
#include <bit>

#include "execute/conversion.hpp"
#include "execute/lanewise.hpp"
#include "numerics/float_ops.hpp"

namespace tessera::emulator::conversion {

using numerics::Format;
using numerics::Rounding;
using ptx::Type;

namespace {

using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;

/// A packed type: how many elements of which format.
struct Packed {
    std::string_view name;
    Format format;
    unsigned count;
    unsigned cell_bits;  ///< distance between elements: 8 for 6-bit formats
};

constexpr std::array packed_types{
    Packed{"f16x2", Format::f16, 2, 16},  Packed{"bf16x2", Format::bf16, 2, 16},  Packed{"e4m3x2", Format::e4m3, 2, 8},
    Packed{"e5m2x2", Format::e5m2, 2, 8}, Packed{"e2m3x2", Format::e2m3, 2, 8},   Packed{"e3m2x2", Format::e3m2, 2, 8},
    Packed{"e2m1x2", Format::e2m1, 2, 4}, Packed{"ue8m0x2", Format::ue8m0, 2, 8}, Packed{"e4m3x4", Format::e4m3, 4, 8},
    Packed{"e5m2x4", Format::e5m2, 4, 8}, Packed{"e2m3x4", Format::e2m3, 4, 8},   Packed{"e3m2x4", Format::e3m2, 4, 8},
    Packed{"e2m1x4", Format::e2m1, 4, 4},
};

[[nodiscard]] const Packed* find_packed(std::string_view name)
{
    const auto found =
        std::find_if(packed_types.begin(), packed_types.end(), [&](const Packed& type) { return type.name == name; });
    return found == packed_types.end() ? nullptr : &*found;
}

[[nodiscard]] bool is_half(Format format) { return format == Format::f16 || format == Format::bf16; }

struct PackedPayload : Payload {
    numerics::Conversion how;
    Format to{}, from{};
    unsigned to_bits = 0, from_bits = 0;  ///< distance between elements

    [[nodiscard]] U32 element(float value) const { return numerics::encode(to, double{value}, how); }
    [[nodiscard]] U32 pack(float high, float low) const { return element(high) << to_bits | element(low); }
    /// Elements of a packed source; 0 is the low one.
    [[nodiscard]] float source(U32 word, unsigned index) const
    {
        return numerics::decode(from, (word >> (index * from_bits)) & ((1u << from_bits) - 1));
    }
};

void expect_narrow_capability(const Decoder& decoder, Format format)
{
    if (format == Format::e4m3 || format == Format::e5m2) {
        expect_capability(decoder, 89, "8-bit floating point");
    } else if (!is_half(format)) {
        expect_capability(decoder, 100, "6- and 4-bit floating point and ue8m0");
    }
}

[[nodiscard]] Type container(const Packed& type) { return bits_of_size(type.count * type.cell_bits / 8); }

// --- two f32 ---

/// The two common conversions, without modifiers.
[[nodiscard]] Execute fast_pair(Format to)
{
    return to == Format::f16 ? lanewise<U32, float, float>([](float a, float b) {
        return U32{numerics::f16_from_float(a)} << 16 | numerics::f16_from_float(b);
    })
                             : lanewise<U32, float, float>([](float a, float b) {
                                   return U32{numerics::bf16_from_float(a)} << 16 | numerics::bf16_from_float(b);
                               });
}

void decode_pair(Decoder& decoder, Operation& operation, const Modifiers& modifiers, const Packed& to)
{
    const bool up_or_zero = modifiers.rounding == Rounding::toward_zero || modifiers.rounding == Rounding::up;
    const bool nearest = modifiers.rounding == Rounding::nearest_even;
    if (to.format == Format::ue8m0) {
        if (!up_or_zero) {
            decoder.fail("a conversion to .ue8m0x2 needs .rz or .rp");
        }
        refuse(decoder, modifiers.relu, "relu");
    } else if (is_half(to.format)) {
        if (!nearest && modifiers.rounding != Rounding::toward_zero) {
            decoder.fail("a conversion to ." + std::string(to.name) + " needs .rn, .rz or .rs");
        }
        expect_capability(decoder, 80, "cvt to ." + std::string(to.name));
    } else {
        if (!nearest || !modifiers.satfinite) {
            decoder.fail("a conversion to ." + std::string(to.name) + " needs .rn and .satfinite");
        }
    }
    decode_rows(decoder, operation, container(to), {Type::f32, Type::f32});
    if (is_half(to.format) && nearest && !modifiers.relu && !modifiers.satfinite) {
        operation.execute = fast_pair(to.format);
        return;
    }
    auto& payload = decoder.emplace_payload<PackedPayload>();
    payload.how = modifiers.conversion();
    payload.to = to.format;
    payload.to_bits = to.cell_bits;
    const auto pack = []<typename D>() {
        return lanewise_with<PackedPayload, D, float, float>(
            [](const PackedPayload& p, float a, float b) { return static_cast<D>(p.pack(a, b)); });
    };
    switch (to.cell_bits) {
        case 4: operation.execute = pack.operator()<U8>(); break;
        case 8: operation.execute = pack.operator()<U16>(); break;
        default: operation.execute = pack.operator()<U32>(); break;
    }
}

// --- stochastic rounding ---

struct StochasticPayload : Payload {
    Format to{};
    unsigned cell_bits = 0;
    bool satfinite = false, relu = false;
    std::array<Ref, 4> sources{};  ///< the first is the most significant

    [[nodiscard]] U32 element(float value, U32 random, int count) const
    {
        return numerics::encode_stochastic(to, value, random, count, satfinite, relu);
    }
};

/// d = {a, b}: the upper half of the random bits is for a, the lower for b; 13 of each for f16, all 16 for bf16.
void decode_stochastic_pair(Decoder& decoder, Operation& operation, const Modifiers& modifiers, const Packed& to)
{
    decode_rows(decoder, operation, Type::b32, {Type::f32, Type::f32, Type::b32});
    auto& payload = decoder.emplace_payload<StochasticPayload>();
    payload.to = to.format;
    payload.satfinite = modifiers.satfinite;
    payload.relu = modifiers.relu;
    operation.execute = lanewise_with<StochasticPayload, U32, float, float, U32>(
        [](const StochasticPayload& p, float a, float b, U32 random) {
            const bool f16 = p.to == Format::f16;
            const U32 mask = f16 ? 0x1FFF : 0xFFFF;
            const int count = f16 ? 13 : 16;
            return p.element(a, random >> 16 & mask, count) << 16 | p.element(b, random & mask, count);
        });
}

/// d = {a, b, e, f}: two values share 16 random bits. For 4-bit elements these come from the upper (a, b) and lower
/// (e, f) bytes of both halves.
template <typename D>
Step stochastic_quad(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& p = operation.as<StochasticPayload>();
    const U32* const random = warp.row<U32>(operation.operand[1]);
    D* const d = warp.row<D>(operation.operand[0]);
    for_each_lane(active, [&](unsigned lane) {
        const U32 bits = random[lane];
        const bool four = p.cell_bits == 4;
        const U32 upper = four ? (bits >> 24) << 8 | (bits >> 8 & 0xFF) : bits >> 16;
        const U32 lower = four ? (bits >> 16 & 0xFF) << 8 | (bits & 0xFF) : bits & 0xFFFF;
        U32 result = 0;
        for (unsigned i = 0; i < p.sources.size(); ++i) {
            const float value = warp.row<float>(p.sources[i])[lane];
            result = result << p.cell_bits | p.element(value, i < 2 ? upper : lower, 16);
        }
        d[lane] = static_cast<D>(result);
    });
    return Step::next;
}

void decode_stochastic_quad(Decoder& decoder, Operation& operation, const Modifiers& modifiers, const Packed& to)
{
    if (!modifiers.satfinite) {
        decoder.fail("a conversion to ." + std::string(to.name) + " needs .satfinite");
    }
    expect_operands(decoder, 3);
    auto& payload = decoder.emplace_payload<StochasticPayload>();
    payload.to = to.format;
    payload.cell_bits = to.cell_bits;
    payload.satfinite = true;
    payload.relu = modifiers.relu;
    const std::vector<Ref> sources = decoder.read_vector(1, Type::f32);
    if (sources.size() != payload.sources.size()) {
        decoder.fail("needs four values {a, b, e, f}");
    }
    std::copy(sources.begin(), sources.end(), payload.sources.begin());
    operation.operand[0] = decoder.write(0, container(to));
    operation.operand[1] = decoder.read(2, Type::b32);
    operation.execute = to.cell_bits == 4 ? stochastic_quad<U16> : stochastic_quad<U32>;
}

void decode_stochastic(Decoder& decoder, Operation& operation, const Modifiers& modifiers, const Packed& to)
{
    expect_capability(decoder, 100, ".rs");
    if (to.count == 4) {
        decode_stochastic_quad(decoder, operation, modifiers, to);
    } else if (is_half(to.format)) {
        decode_stochastic_pair(decoder, operation, modifiers, to);
    } else {
        decoder.fail(".rs is not defined for ." + std::string(to.name));
    }
}

// --- from packed to packed ---

template <typename D, typename S>
[[nodiscard]] Execute repack()
{
    return lanewise_with<PackedPayload, D, S>(
        [](const PackedPayload& p, S a) { return static_cast<D>(p.pack(p.source(a, 1), p.source(a, 0))); });
}

void decode_repack(Decoder& decoder, Operation& operation, const Modifiers& modifiers, const Packed& to,
                   const Packed& from)
{
    const bool nearest = modifiers.rounding == Rounding::nearest_even;
    const bool widens = (to.format == Format::f16 && !is_half(from.format) && from.format != Format::ue8m0) ||
                        (to.format == Format::bf16 && from.format == Format::ue8m0);
    const bool narrows = from.format == Format::f16 &&
                         (to.format == Format::e4m3 || to.format == Format::e5m2 || to.format == Format::e2m1);
    const bool to_scale = from.format == Format::bf16 && to.format == Format::ue8m0;
    if (to.count != 2 || from.count != 2 || !(widens || narrows || to_scale)) {
        decoder.fail("does not convert ." + std::string(from.name) + " to ." + std::string(to.name));
    }
    if (to_scale) {
        if (modifiers.rounding != Rounding::toward_zero && modifiers.rounding != Rounding::up) {
            decoder.fail("a conversion to .ue8m0x2 needs .rz or .rp");
        }
    } else if (!nearest) {
        decoder.fail("needs .rn");
    }
    if (narrows && !modifiers.satfinite) {
        decoder.fail("a conversion to ." + std::string(to.name) + " needs .satfinite");
    }
    refuse(decoder, widens && modifiers.satfinite, "satfinite");
    refuse(decoder, modifiers.relu && (to_scale || from.format == Format::ue8m0), "relu");
    decode_rows(decoder, operation, container(to), {container(from)});
    auto& payload = decoder.emplace_payload<PackedPayload>();
    payload.how = modifiers.conversion();
    payload.to = to.format;
    payload.to_bits = to.cell_bits;
    payload.from = from.format;
    payload.from_bits = from.cell_bits;
    if (widens) {
        operation.execute = from.cell_bits == 4 ? repack<U32, U8>() : repack<U32, U16>();
    } else {
        operation.execute = to.cell_bits == 4 ? repack<U8, U32>() : repack<U16, U32>();
    }
}

}  // namespace

bool is_packed_type(std::string_view name) { return find_packed(name) != nullptr; }

void decode_packed(Decoder& decoder, Operation& operation, const Modifiers& modifiers, std::string_view destination,
                   std::string_view source)
{
    const Packed* const to = find_packed(destination);
    const Packed* const from = find_packed(source);
    refuse(decoder, modifiers.ftz, "ftz");
    refuse(decoder, modifiers.sat, "sat");
    refuse(decoder, modifiers.integral, "rni, .rzi, .rmi or .rpi");
    refuse(decoder, modifiers.rounding == Rounding::nearest_away, "rna");
    for (const Packed* type : {to, from}) {
        if (type != nullptr) {
            expect_narrow_capability(decoder, type->format);
        }
    }
    if (to != nullptr && from != nullptr) {
        refuse(decoder, modifiers.stochastic, "rs");
        return decode_repack(decoder, operation, modifiers, *to, *from);
    }
    if (to == nullptr || source != "f32") {
        decoder.fail("does not convert ." + std::string(source) + " to ." + std::string(destination));
    }
    if (modifiers.stochastic) {
        return decode_stochastic(decoder, operation, modifiers, *to);
    }
    if (to->count != 2) {
        decoder.fail("a conversion to ." + std::string(to->name) + " needs .rs");
    }
    decode_pair(decoder, operation, modifiers, *to);
}

// --- cvt.pack ---

namespace {

struct PackPayload : Payload {
    std::int32_t low = 0, high = 0;  ///< range of the type
    unsigned bits = 0;

    [[nodiscard]] U32 field(std::int32_t value) const
    {
        return static_cast<U32>(std::clamp(value, low, high)) & static_cast<U32>((std::uint64_t{1} << bits) - 1);
    }
};

}  // namespace

void decode_pack(Decoder& decoder, Operation& operation)
{
    if (!decoder.take("sat")) {
        decoder.fail("cvt.pack needs .sat");
    }
    const std::string_view name = decoder.take_one_of({"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"});
    if (name.empty()) {
        decoder.fail("cvt.pack makes .u16 .s16 .u8 .s8 .u4 .s4 .u2 or .s2");
    }
    auto& payload = decoder.emplace_payload<PackPayload>();
    payload.bits = static_cast<unsigned>(std::stoi(std::string(name.substr(1))));
    const bool is_unsigned = name[0] == 'u';
    const auto span = std::int32_t{1} << payload.bits;
    payload.low = is_unsigned ? 0 : -span / 2;
    payload.high = is_unsigned ? span - 1 : span / 2 - 1;
    if (decoder.require_type() != Type::s32) {
        decoder.fail("cvt.pack packs .s32 values");
    }
    const bool appends = decoder.take("b32");
    if (appends == (payload.bits == 16)) {
        decoder.fail(appends ? "16-bit values fill the result: there is no third operand"
                             : "needs .b32 and a third operand, whose bits follow");
    }
    if (!appends) {
        decode_rows(decoder, operation, Type::b32, {Type::s32, Type::s32});
        operation.execute = lanewise_with<PackPayload, U32, std::int32_t, std::int32_t>(
            [](const PackPayload& p, std::int32_t a, std::int32_t b) { return p.field(a) << 16 | p.field(b); });
        return;
    }
    decode_rows(decoder, operation, Type::b32, {Type::s32, Type::s32, Type::b32});
    operation.execute = lanewise_with<PackPayload, U32, std::int32_t, std::int32_t, U32>(
        [](const PackPayload& p, std::int32_t a, std::int32_t b, U32 c) {
            return c << (2 * p.bits) | p.field(a) << p.bits | p.field(b);
        });
}

}  // namespace tessera::emulator::conversion
