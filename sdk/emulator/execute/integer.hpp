#pragma once

// What the decoders of integer arithmetic share.

#include <cstdint>
#include <span>

#include "execute/lanewise.hpp"

namespace tessera::emulator::integer {

/// Twice as wide, same signedness.
template <typename T>
struct Widened;
template <>
struct Widened<std::uint16_t> {
    using type = std::uint32_t;
};
template <>
struct Widened<std::int16_t> {
    using type = std::int32_t;
};
template <>
struct Widened<std::uint32_t> {
    using type = std::uint64_t;
};
template <>
struct Widened<std::int32_t> {
    using type = std::int64_t;
};
template <>
struct Widened<std::uint64_t> {
    __extension__ using type = unsigned __int128;
};
template <>
struct Widened<std::int64_t> {
    __extension__ using type = __int128;
};
template <typename T>
using Wide = typename Widened<T>::type;

template <typename T>
constexpr T wrapping_add(T a, T b)
{
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}

template <typename T>
constexpr T wrapping_sub(T a, T b)
{
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}

template <typename T>
constexpr T low_product(T a, T b)
{
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}

template <typename T>
constexpr T high_product(T a, T b)
{
    return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (8 * sizeof(T)));
}

enum class CarryUse : std::uint8_t { out, in, in_out };

// Extended precision: execute/carry.cpp. The decoders of add, sub and mad call this for their forms with .cc.
void decode_carry(Decoder& decoder, Operation& operation, CarryUse use, bool subtract);
void decode_mad_carry(Decoder& decoder, Operation& operation, CarryUse use);
/// addc, subc, madc.
[[nodiscard]] std::span<const InstructionEntry> carry_instructions();

}  // namespace tessera::emulator::integer
