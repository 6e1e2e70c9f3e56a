// The exact path of kind::mxf4 and kind::mxf4nvf4.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "dispatch.hpp"
#include "exact_number.hpp"
#include "tensor_sum.hpp"

namespace tessera::emulator::numerics {
namespace {

/// Twice the value of each E2M1 code.
constexpr std::array<std::int16_t, 16> doubled = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

constexpr int fraction_bits = 35;
constexpr int smallest_exponent = -139;  ///< of the common exponent
constexpr std::size_t elements_per_group = 16;
constexpr std::size_t longest_groups = 16;
/// A term: both elements doubled, and 3 fraction bits of each scale's significand.
constexpr int term_fraction_bits = 2 + 3 + 3;

struct Scale {
    std::int32_t significand = 0;  ///< with 3 fraction bits
    std::int32_t exponent = 0;
    bool nan = false;
};

Scale split_scale(Format format, std::uint8_t code)
{
    if (format == Format::ue8m0) {
        return {8, code - 127, code == 0xFF};
    }
    const int field = (code & 0x7F) >> 3;
    const int fraction = code & 7;
    return {field == 0 ? fraction : fraction | 8, std::max(field, 1) - e4m3_layout.bias, (code & 0x7F) == 0x7F};
}

std::vector<Scale> split_scales(const BlockScales& scales, const std::uint8_t* codes, std::size_t outer)
{
    std::vector<Scale> out(outer * scales.per_row);
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = split_scale(scales.format, codes[i]);
    }
    return out;
}

struct Term {
    std::int64_t significand;
    int fraction;
    int exponent;
};

std::int64_t align(const Term& term, int exponent)
{
    const int shift = fraction_bits - term.fraction - (exponent - term.exponent);
    const std::int64_t magnitude = std::abs(term.significand);
    const std::int64_t cut = shift >= 0 ? magnitude << shift : shift > -63 ? magnitude >> -shift : 0;
    return term.significand < 0 ? -cut : cut;
}

Term split_accumulator(float c)
{
    const auto bits = std::bit_cast<std::uint32_t>(c);
    const auto field = static_cast<int>((bits >> 23) & 0xFFU);
    const std::int64_t magnitude = (bits & 0x7F'FFFFU) | (field == 0 ? 0U : 0x80'0000U);
    return {(bits >> 31) != 0 ? -magnitude : magnitude, 23, std::max(field, 1) - 127};
}

float finish(std::int64_t total, int exponent)
{
    if (total == 0) {
        return 0.0F;
    }
    const auto magnitude = static_cast<std::uint64_t>(std::abs(total));
    const std::uint64_t code =
        round_magnitude(f32_layout, total < 0, magnitude, exponent - fraction_bits, Rounding::toward_zero);
    if (code == 0) {
        return 0.0F;  // never -0
    }
    const std::uint64_t finite = std::min(code, f32_layout.beyond);
    return std::bit_cast<float>(static_cast<std::uint32_t>(total < 0 ? finite | f32_layout.sign_mask() : finite));
}

/// Bit i is set if element i of the group is not zero.
std::uint16_t nonzero_elements(const std::int16_t* elements, std::size_t stride)
{
    unsigned bits = 0;
    for (std::size_t i = 0; i < elements_per_group; ++i) {
        bits |= (elements[i * stride] != 0 ? 1U : 0U) << i;
    }
    return static_cast<std::uint16_t>(bits);
}

/// The groups of one row of A and of all columns of B.
struct Groups {
    std::size_t n, count;
    const std::int32_t* sums;                 ///< [group][n], exact
    const std::uint16_t* nonzero_a;           ///< [group]
    const std::uint16_t* nonzero_b;           ///< [group][n]
    const Scale* row_scales;                  ///< [per_row]
    const std::vector<Scale>& column_scales;  ///< [n][per_row]
    std::size_t per_row;
};

/// One row of D.
void finish_row(const Groups& groups, float* d, bool accumulate)
{
    std::array<Term, longest_groups> terms;
    const std::size_t n = groups.n;
    for (std::size_t column = 0; column < n; ++column) {
        const float c = accumulate ? d[column] : 0.0F;
        Term addend = split_accumulator(c);
        int largest = smallest_exponent;
        if (addend.significand != 0) {
            largest = std::max(largest, addend.exponent);
        }
        bool nan = c != c;
        for (std::size_t g = 0; g < groups.count; ++g) {
            const std::size_t scale = g * groups.per_row / groups.count;
            const Scale& sa = groups.row_scales[scale];
            const Scale& sb = groups.column_scales[column * groups.per_row + scale];
            nan = nan || sa.nan || sb.nan;
            const std::int32_t scales = sa.significand * sb.significand;
            terms[g] = {std::int64_t{groups.sums[g * n + column]} * scales, term_fraction_bits,
                        sa.exponent + sb.exponent};
            // The exponent does not wait for the sum: products that cancel have one, a group without any has none.
            const bool has_products = (groups.nonzero_a[g] & groups.nonzero_b[g * n + column]) != 0;
            if (has_products && scales != 0) {
                largest = std::max(largest, terms[g].exponent);
            }
        }
        if (nan || std::isinf(c)) {
            d[column] = nan ? std::bit_cast<float>(canonical_nan_f32) : c;
            continue;
        }
        std::int64_t total = align(addend, largest);
        for (std::size_t g = 0; g < groups.count; ++g) {
            total += align(terms[g], largest);
        }
        d[column] = finish(total, largest);
    }
}

/// sums[group][n] = sum over the group's 16 elements; B is [k][n].
TESSERA_INLINE void sum_groups(std::size_t n, std::size_t k, const std::int16_t* a, const std::int16_t* b,
                               std::int32_t* sums)
{
    std::fill(sums, sums + k / elements_per_group * n, 0);
    for (std::size_t i = 0; i < k; ++i) {
        std::int32_t* const out = sums + i / elements_per_group * n;
        const std::int16_t* const from = b + i * n;
        const std::int32_t factor = a[i];
        for (std::size_t column = 0; column < n; ++column) {
            out[column] += factor * from[column];
        }
    }
}

#if TESSERA_HAS_WIDE_VECTORS
TESSERA_TARGET_V4 void sum_groups_avx512(std::size_t n, std::size_t k, const std::int16_t* a, const std::int16_t* b,
                                         std::int32_t* sums)
{
    sum_groups(n, k, a, b, sums);
}
TESSERA_TARGET_V3 void sum_groups_avx2(std::size_t n, std::size_t k, const std::int16_t* a, const std::int16_t* b,
                                       std::int32_t* sums)
{
    sum_groups(n, k, a, b, sums);
}
#endif

void sum_groups_portable(std::size_t n, std::size_t k, const std::int16_t* a, const std::int16_t* b, std::int32_t* sums)
{
    sum_groups(n, k, a, b, sums);
}

using SumGroups = void (*)(std::size_t, std::size_t, const std::int16_t*, const std::int16_t*, std::int32_t*);

SumGroups pick_sum_groups()
{
#if TESSERA_HAS_WIDE_VECTORS
    switch (detail::vector_unit()) {
        case detail::VectorUnit::avx512: return sum_groups_avx512;
        case detail::VectorUnit::avx2: return sum_groups_avx2;
        case detail::VectorUnit::portable: break;
    }
#endif
    return sum_groups_portable;
}

}  // namespace

void multiply_exact_mxf4(std::size_t m, std::size_t n, std::size_t k, const std::uint8_t* a, const std::uint8_t* b,
                         const BlockScales& scales, float* d, std::size_t ldd, bool accumulate, bool negate)
{
    const std::size_t groups = k / elements_per_group;
    if (k % elements_per_group != 0 || groups > longest_groups || scales.per_row == 0 || groups % scales.per_row != 0) {
        throw std::invalid_argument("K = " + std::to_string(k) + " with " + std::to_string(scales.per_row) +
                                    " scale factors per row: K must be a multiple of 16, at most 256, and each scale "
                                    "factor must cover whole groups of 16");
    }
    std::vector<std::int16_t> a_values(m * k);
    std::vector<std::int16_t> b_values(n * k);
    for (std::size_t i = 0; i < m * k; ++i) {
        const std::int16_t value = doubled[a[i] & 0xFU];
        a_values[i] = negate ? static_cast<std::int16_t>(-value) : value;
    }
    for (std::size_t column = 0; column < n; ++column) {
        for (std::size_t i = 0; i < k; ++i) {
            b_values[i * n + column] = doubled[b[column * k + i] & 0xFU];
        }
    }
    const std::vector<Scale> row_scales = split_scales(scales, scales.a, m);
    const std::vector<Scale> column_scales = split_scales(scales, scales.b, n);
    std::vector<std::int32_t> sums(groups * n);
    std::array<std::uint16_t, longest_groups> nonzero_a{};
    std::vector<std::uint16_t> nonzero_b(groups * n);
    for (std::size_t i = 0; i < nonzero_b.size(); ++i) {
        nonzero_b[i] = nonzero_elements(b_values.data() + i / n * elements_per_group * n + i % n, n);
    }
    const SumGroups sum_of_groups = pick_sum_groups();
    for (std::size_t row = 0; row < m; ++row) {
        sum_of_groups(n, k, a_values.data() + row * k, b_values.data(), sums.data());
        for (std::size_t g = 0; g < groups; ++g) {
            nonzero_a[g] = nonzero_elements(a_values.data() + row * k + g * elements_per_group, 1);
        }
        finish_row({n, groups, sums.data(), nonzero_a.data(), nonzero_b.data(),
                    row_scales.data() + row * scales.per_row, column_scales, scales.per_row},
                   d + row * ldd, accumulate);
    }
}

}  // namespace tessera::emulator::numerics
