#pragma once

// What the decoders of floating-point instructions share.

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "execute/lanewise.hpp"
#include "numerics/float_ops.hpp"

namespace tessera::emulator::floating {

using numerics::Rounding;
using ptx::Type;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

struct FloatPayload : Payload {
    numerics::Modifiers how;
    bool relu = false;
    bool oob = false;
};

struct SelectionPayload : Payload {
    numerics::Selection how;
};

[[nodiscard]] inline std::optional<Rounding> take_rounding(Decoder& decoder)
{
    const std::string_view name = decoder.take_one_of({"rn", "rz", "rm", "rp"});
    if (name.empty()) {
        return std::nullopt;
    }
    return name == "rn"   ? Rounding::nearest_even
           : name == "rz" ? Rounding::toward_zero
           : name == "rm" ? Rounding::down
                          : Rounding::up;
}

/// Modifiers of one instruction, before the type says which are allowed.
struct Taken {
    std::optional<Rounding> rounding;
    bool ftz = false, sat = false, relu = false, oob = false;

    [[nodiscard]] numerics::Modifiers modifiers() const
    {
        return {rounding.value_or(Rounding::nearest_even), ftz, sat};
    }
    [[nodiscard]] bool nearest() const { return rounding.value_or(Rounding::nearest_even) == Rounding::nearest_even; }
};

[[nodiscard]] inline Taken take_modifiers(Decoder& decoder)
{
    Taken taken;
    taken.rounding = take_rounding(decoder);
    taken.ftz = decoder.take("ftz");
    taken.sat = decoder.take("sat");
    return taken;
}

inline void refuse(const Decoder& decoder, bool present, std::string_view modifier, Type type)
{
    if (present) {
        decoder.fail("." + std::string(modifier) + " is not defined for type " + dotted(type));
    }
}

/// f32 values of a packed pair.
[[nodiscard]] inline float first_of(U64 pair) { return std::bit_cast<float>(static_cast<U32>(pair)); }
[[nodiscard]] inline float second_of(U64 pair) { return std::bit_cast<float>(static_cast<U32>(pair >> 32)); }
template <typename F, typename... Pairs>
[[nodiscard]] U64 each_float(F f, Pairs... pairs)
{
    const U64 low = std::bit_cast<U32>(f(first_of(pairs)...));
    const U64 high = std::bit_cast<U32>(f(second_of(pairs)...));
    return low | high << 32;
}

/// One instruction for f16, bf16 and their packed forms: `half(payload, a, ...)` works on codes.
template <std::size_t inputs, typename P, typename F>
[[nodiscard]] Execute half_or_packed(bool packed, F)
{
    if constexpr (inputs == 1) {
        return packed ? lanewise_with<P, U32, U32>(
                            [](const P& p, U32 a) { return numerics::each_half([&p](U16 x) { return F{}(p, x); }, a); })
                      : lanewise_with<P, U16, U16>([](const P& p, U16 a) { return F{}(p, a); });
    } else if constexpr (inputs == 2) {
        return packed ? lanewise_with<P, U32, U32, U32>([](const P& p, U32 a, U32 b) {
            return numerics::each_half([&p](U16 x, U16 y) { return F{}(p, x, y); }, a, b);
        })
                      : lanewise_with<P, U16, U16, U16>([](const P& p, U16 a, U16 b) { return F{}(p, a, b); });
    } else {
        return packed ? lanewise_with<P, U32, U32, U32, U32>([](const P& p, U32 a, U32 b, U32 c) {
            return numerics::each_half([&p](U16 x, U16 y, U16 z) { return F{}(p, x, y, z); }, a, b, c);
        })
                      : lanewise_with<P, U16, U16, U16, U16>(
                            [](const P& p, U16 a, U16 b, U16 c) { return F{}(p, a, b, c); });
    }
}

[[nodiscard]] inline bool is_packed(Type type) { return type == Type::f16x2 || type == Type::bf16x2; }

/// div, rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh: execute/floating_functions.cpp.
[[nodiscard]] std::span<const InstructionEntry> function_instructions();

}  // namespace tessera::emulator::floating
