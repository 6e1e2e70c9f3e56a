#pragma once

// The dot product of a tensor core, written literally and slowly from the description of the model (MMA-Sim, arXiv
// 2511.10909): one term after the other, 128-bit integers, no code shared with the emulator.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../hardware/probe_inputs.hpp"

namespace tessera::slow {

using probe::Bits;
using Wide = __int128;

/// A number as hardware splits it: (-1)^sign * significand * 2^(exponent - fraction), or infinity or NaN.
struct Split {
    bool sign = false;
    bool infinite = false;
    bool nan = false;
    Wide significand = 0;
    int fraction = 0;
    int exponent = 0;
    bool keeps_exponent = false;  ///< even if the significand is zero
};

/// The low `bits.pad` bits of `code` are ignored.
inline Split split(std::uint64_t code, const Bits& bits)
{
    code >>= bits.pad;
    Split out;
    out.fraction = bits.mantissa;
    out.sign = ((code >> (bits.mantissa + bits.exponent)) & 1U) != 0;
    const std::uint64_t mantissa = code & ((std::uint64_t{1} << bits.mantissa) - 1);
    const int field = static_cast<int>((code >> bits.mantissa) & ((1U << bits.exponent) - 1U));
    const int top = (1 << bits.exponent) - 1;
    if (bits.ieee && field == top) {
        out.infinite = mantissa == 0;
        out.nan = mantissa != 0;
    } else if (!bits.ieee && bits.has_nan && field == top && mantissa == (std::uint64_t{1} << bits.mantissa) - 1) {
        out.nan = true;
    } else {
        out.significand = static_cast<Wide>(field == 0 ? mantissa : mantissa | (std::uint64_t{1} << bits.mantissa));
        out.exponent = (field == 0 ? 1 : field) - bits.bias;
    }
    return out;
}

enum class Output { f32, f32_of_13_bits, f16 };

struct Model {
    int fraction_bits = 25;
    int terms_per_sum = 1 << 20;
    Output output = Output::f32;
    int smallest_exponent = -133;  ///< of the common exponent; -133 and, for f16, -21 on an H200
    int c_shift = 0;               ///< the addend is multiplied by 2^-c_shift
};

/// Magnitude * 2^(-fraction_bits) * 2^exponent in the hardware's format.
inline std::uint32_t finish(Wide sum, int exponent, const Model& model)
{
    const bool sign = sum < 0;
    Wide magnitude = sign ? -sum : sum;
    if (magnitude == 0) {
        return 0;
    }
    int top = 0;
    while ((magnitude >> (top + 1)) != 0) {
        ++top;
    }
    const bool is_f16 = model.output == Output::f16;
    const int mantissa = is_f16 ? 10 : model.output == Output::f32 ? 23 : 13;
    const int bias = is_f16 ? 15 : 127;
    const int largest = is_f16 ? 15 : 127;
    int scale = std::max(top + exponent - model.fraction_bits, 1 - bias);  // exponent of the result
    const int drop = mantissa - scale + exponent - model.fraction_bits;    // < 0: bits to drop
    Wide kept = 0;
    if (drop >= 0) {
        kept = magnitude << drop;
    } else {
        const int count = std::min(-drop, 126);
        kept = magnitude >> count;
        if (is_f16) {
            const Wide rest = magnitude - (kept << count);
            const Wide half = static_cast<Wide>(1) << (count - 1);
            if (rest > half || (rest == half && (kept & 1) != 0)) {
                ++kept;
            }
        }
    }
    if ((kept >> (mantissa + 1)) != 0) {
        kept >>= 1;
        ++scale;
    }
    if (kept == 0) {
        return 0;  // never -0
    }
    const std::uint32_t sign_bit = sign ? (is_f16 ? 0x8000U : 0x8000'0000U) : 0U;
    if (scale > largest) {
        return sign_bit | (is_f16 ? 0x7C00U : 0x7F80'0000U);
    }
    const bool is_normal = (kept >> mantissa) != 0;
    const auto field = static_cast<std::uint32_t>(is_normal ? scale + bias : 0);
    const auto fraction = static_cast<std::uint32_t>(kept & ((static_cast<Wide>(1) << mantissa) - 1));
    return is_f16 ? sign_bit | field << 10 | fraction : sign_bit | field << 23 | fraction << (23 - mantissa);
}

inline std::uint32_t sum_of_terms(const std::vector<Split>& terms, const Model& model)
{
    bool plus = false;
    bool minus = false;
    bool nan = false;
    int largest = model.smallest_exponent;
    for (const Split& term : terms) {
        nan = nan || term.nan;
        plus = plus || (term.infinite && !term.sign);
        minus = minus || (term.infinite && term.sign);
        if (term.significand != 0 || term.keeps_exponent) {
            largest = std::max(largest, term.exponent);
        }
    }
    const bool is_f16 = model.output == Output::f16;
    if (nan || (plus && minus)) {
        return is_f16 ? 0x7FFFU : 0x7FFF'FFFFU;
    }
    if (plus || minus) {
        return (is_f16 ? 0x7C00U : 0x7F80'0000U) | (minus ? (is_f16 ? 0x8000U : 0x8000'0000U) : 0U);
    }
    Wide sum = 0;
    for (const Split& term : terms) {
        const int shift = model.fraction_bits - term.fraction - (largest - term.exponent);
        const Wide aligned = shift >= 0 ? term.significand << shift : shift < -120 ? 0 : term.significand >> -shift;
        sum += term.sign ? -aligned : aligned;
    }
    return finish(sum, largest, model);
}

/// One element of D: A's row and B's column of k codes each.
inline std::uint32_t dot(const std::uint64_t* a, const std::uint64_t* b, int k, std::uint64_t c, const Bits& a_bits,
                         const Bits& b_bits, const Bits& c_bits, const Model& model)
{
    std::uint64_t accumulator = c;
    for (int first = 0; first < k; first += model.terms_per_sum) {
        std::vector<Split> terms{split(accumulator, c_bits)};
        terms[0].exponent -= first == 0 ? model.c_shift : 0;
        for (int i = first; i < std::min(k, first + model.terms_per_sum); ++i) {
            const Split x = split(a[i], a_bits);
            const Split y = split(b[i], b_bits);
            Split product;
            product.sign = x.sign != y.sign;
            const bool zero = (x.significand == 0 && !x.infinite) || (y.significand == 0 && !y.infinite);
            product.nan = x.nan || y.nan || ((x.infinite || y.infinite) && zero);
            product.infinite = !product.nan && (x.infinite || y.infinite);
            product.significand = x.significand * y.significand;
            product.fraction = x.fraction + y.fraction;
            product.exponent = x.exponent + y.exponent;
            terms.push_back(product);
        }
        accumulator = sum_of_terms(terms, model);
    }
    return static_cast<std::uint32_t>(accumulator);
}

}  // namespace tessera::slow
