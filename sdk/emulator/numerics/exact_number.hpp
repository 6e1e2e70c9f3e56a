#pragma once

#include <cstddef>
#include <cstdint>

/// The internal form of operands on the exact path. Private to the numerics folder.
namespace tessera::emulator::numerics::detail {

/// Fraction bits of every decoded significand; f16 and tf32 need the most.
inline constexpr int significand_bits = 10;
inline constexpr std::int16_t significand_one = 1 << significand_bits;
/// So small that a zero never determines the common exponent.
inline constexpr std::int16_t zero_exponent = -4000;
/// Marks an infinity (significand +-1) or a NaN (significand 0).
inline constexpr std::int16_t special_exponent = 16000;
/// The smallest common exponent of a sum, measured on an H200 with sums of products below the normal range of f32.
inline constexpr int smallest_exponent = -133;
/// Columns that are computed together.
inline constexpr std::size_t group = 32;

/// (significand / 2^10) * 2^exponent
struct Number {
    std::int16_t significand = 0;
    std::int16_t exponent = zero_exponent;
};

}  // namespace tessera::emulator::numerics::detail
