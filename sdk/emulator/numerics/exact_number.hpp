#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

/// The internal form of operands on the exact path. Private to the numerics folder.
namespace tessera::emulator::numerics::detail {

/// Fraction bits of every significand; f16 and tf32 need the most.
inline constexpr int significand_bits = 10;
inline constexpr std::int16_t significand_one = 1 << significand_bits;
/// So small that a zero never determines the common exponent.
inline constexpr std::int16_t zero_exponent = -4000;
/// Above the exponent of any product with a zero, and below that of any other, however they are scaled.
inline constexpr std::int32_t largest_zero_exponent = -3000;
/// Marks an infinity or a NaN. A product with it is larger than any other.
inline constexpr std::int16_t special_exponent = 16000;
/// Columns that are computed together.
inline constexpr std::size_t group = 32;

/// value * 2^(10 - exponent), an integer of at most 11 bits; of an infinity +-2^10, of a NaN 0.
inline std::int32_t significand_of(float value, std::int16_t exponent)
{
    if (exponent == special_exponent) {
        return value > 0 ? significand_one : value < 0 ? -significand_one : 0;
    }
    // Of a zero, any power will do.
    const int power = exponent == zero_exponent ? 0 : significand_bits - exponent;
    return static_cast<std::int32_t>(value * std::bit_cast<double>(static_cast<std::uint64_t>(power + 1023) << 52));
}

}  // namespace tessera::emulator::numerics::detail
