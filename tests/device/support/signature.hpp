#pragma once

/// Inputs in which every row, every column and every k has its own signature, in small integers. All sums are exact, so
/// D must be exactly right, and a permuted, repeated or omitted index changes D.
///
/// Signs are Walsh functions (the parity of the common bits of two numbers). They are orthogonal: no k can replace
/// another. Magnitudes distinguish rows and columns where the signs repeat. 251, 241, 7 and 5 are primes, so they
/// repeat at odd distances, where the Walsh function of k = 0 changes its sign.

#include <bit>
#include <cstdint>

#include "tessera/element.hpp"

namespace tessera::test {

/// Up to this k every sum is below 2^24 and therefore exact in fp32.
inline constexpr std::int64_t longest_exact_k = 119;

inline float walsh(std::int64_t left, std::int64_t right)
{
    return std::popcount(static_cast<std::uint64_t>(left & right)) % 2 == 0 ? 1.0F : -1.0F;
}

/// A(row, k): an integer of at most 8 bits, exact in every type; for 8-bit types of at most 3 bits, the significand of
/// e5m2.
inline float signature_a_in(ElementType type, std::int64_t row, std::int64_t k)
{
    return walsh(row + 1, k + 1) * static_cast<float>(1 + row % (is_float8(type) ? 7 : 251));
}

/// B(k, column): the same, times 1, 2 or 4, which distinguishes values of k whose Walsh functions agree in few columns.
inline float signature_b_in(ElementType type, std::int64_t k, std::int64_t column)
{
    return walsh(2 * k + 1, column + 1) * static_cast<float>(1 + column % (is_float8(type) ? 5 : 241)) *
           static_cast<float>(1 << k % 3);
}

/// The same where sums may be in f16: sums of up to 64 products are integers that f16 has.
inline float signature_a_of_f16_sums(std::int64_t row, std::int64_t k)
{
    return walsh(row + 1, k + 1) * static_cast<float>(1 + row % 5);
}
inline float signature_b_of_f16_sums(std::int64_t k, std::int64_t column)
{
    return walsh(2 * k + 1, column + 1) * static_cast<float>(1 + column % 3) * static_cast<float>(1 << k % 2);
}

/// For types of 16 bits and more.
inline float signature_a(std::int64_t row, std::int64_t k) { return signature_a_in(ElementType::f32, row, k); }
inline float signature_b(std::int64_t k, std::int64_t column) { return signature_b_in(ElementType::f32, k, column); }

/// C(row, column) and the bias: integers from -8 to 8.
inline float signature_c(std::int64_t row, std::int64_t column)
{
    return static_cast<float>((3 * row + 5 * column) % 17 - 8);
}

}  // namespace tessera::test
