// Aligned, cut sums by integer arithmetic: any exponents, infinities and NaN.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>

#include "dispatch.hpp"
#include "exact_number.hpp"
#include "exact_sum.hpp"
#include "float_ops.hpp"
#include "vectors.hpp"

namespace tessera::emulator::numerics::detail {
namespace {

/// The terms of one row of A in the order of the sum, prepared as far as they do not depend on the column.
struct Row {
    std::array<std::int32_t, longest_k> significands;
    std::array<std::int32_t, longest_k> exponents;
};

/// A group of accumulators that become terms of the sum.
struct Group {
    std::array<float, group> c;
    std::array<std::int32_t, group> exponent;
    std::array<std::int32_t, group> low;
    std::array<double, group> total;
};

/// Splits the accumulators and finds the common exponent of all terms of a group of columns. Products that 25 fraction
/// bits do not reach become zero, however small their exponent.
template <int Bytes>
TESSERA_INLINE void common_exponents(const Sum& sum, const Row& row, std::size_t column, int row_scale, Group& g)
{
    using V = Vectors<Bytes>;
    using Int = typename V::Int;
    constexpr std::size_t vectors = group / V::lanes;
    // Copies: the compiler must assume that storing a vector changes `sum`.
    const std::size_t count = sum.count;
    const std::size_t stride = sum.b->stride();
    const std::uint16_t* const order = sum.order;
    const std::int16_t* const exponents = sum.b->exponents() + column;
    for (std::size_t v = 0; v < vectors; ++v) {
        const std::size_t at = column + v * V::lanes;
        Int largest = Int{} + zero_exponent * 4;
        Int e;
        for (std::size_t i = 0; i < count; ++i) {
            widen<Bytes>(exponents + order[i] * stride + v * V::lanes, e);
            e += row.exponents[i];
            largest = largest > e ? largest : e;
        }
        largest += row_scale;
        if (sum.scale_b != nullptr) {
            widen<Bytes>(sum.scale_b + at, e);
            largest += e;
        }
        load(g.exponent.data() + v * V::lanes, e);
        largest = largest > e ? largest : e;
        store(g.exponent.data() + v * V::lanes, largest);
    }
}

/// Adds the aligned products of a group of columns to g.total. Uses 32 bits while they fit: a product is less than 4,
/// the accumulator less than 2.
template <int Bytes>
TESSERA_INLINE void add_products(const Sum& sum, const Row& row, std::size_t column, int row_scale, int extra_shift,
                                 Group& g)
{
    using V = Vectors<Bytes>;
    using Int = typename V::Int;
    constexpr std::size_t vectors = group / V::lanes;
    using Unsigned = typename V::Unsigned;
    const std::size_t terms_in_32_bits = (std::size_t{1} << (29 - sum.model->fraction_bits)) - 1;
    const std::size_t all = sum.count;
    const std::size_t stride = sum.b->stride();
    const std::uint16_t* const order = sum.order;
    const std::int16_t* const significands = sum.b->significands() + column;
    const std::int16_t* const exponents = sum.b->exponents() + column;
    for (std::size_t first = 0; first < all; first += terms_in_32_bits) {
        const std::size_t last = std::min(all, first + terms_in_32_bits);
        for (std::size_t v = 0; v < vectors; ++v) {
            const std::size_t at = column + v * V::lanes;
            Int base;
            Int significand;
            Int exponent;
            load(g.exponent.data() + v * V::lanes, base);
            base += extra_shift - row_scale;
            if (sum.scale_b != nullptr) {
                widen<Bytes>(sum.scale_b + at, exponent);
                base -= exponent;
            }
            Int total{};
            if (first == 0) {
                load(g.low.data() + v * V::lanes, total);
            }
            for (std::size_t i = first; i < last; ++i) {
                const std::size_t offset = order[i] * stride + v * V::lanes;
                widen<Bytes>(significands + offset, significand);
                widen<Bytes>(exponents + offset, exponent);
                const Int product = significand * row.significands[i];
                const Int shift = base - row.exponents[i] - exponent;
                const Int sign = product >> 31;
                const auto magnitude = reinterpret_cast<Unsigned>((product ^ sign) - sign);
                const auto count = reinterpret_cast<Unsigned>(shift < 31 ? shift : Int{} + 31);
                total += (reinterpret_cast<Int>(magnitude >> count) ^ sign) - sign;
            }
            store(g.low.data() + v * V::lanes, total);
        }
        for (std::size_t i = 0; i < group; ++i) {
            g.total[i] = first == 0 ? double{0} + g.low[i] : g.total[i] + g.low[i];
        }
    }
}

/// Splits accumulators into significands and their own exponents, from which the common ones start. Returns true if one
/// is infinite or NaN.
TESSERA_INLINE bool split_accumulators(const Sum& sum, Group& g, std::array<std::int32_t, group>& significand,
                                       std::array<std::int32_t, group>& own)
{
    const bool is_f16 = sum.model->result == SumModel::Result::f16_nearest;
    const std::int32_t smallest = sum.model->smallest_exponent;
    std::int32_t any = 0;
    for (std::size_t i = 0; i < group; ++i) {
        const auto bits = std::bit_cast<std::uint32_t>(g.c[i]);
        const auto field = static_cast<std::int32_t>((bits >> 23) & 0xFFU);
        any |= field == 0xFF ? 1 : 0;
        auto magnitude = static_cast<std::int32_t>((bits & 0x7F'FFFFU) | (field == 0 ? 0U : 0x80'0000U));
        std::int32_t exponent = (field == 0 ? 1 : field) - 127;
        if (is_f16) {  // a subnormal f16 keeps the exponent of the subnormal range
            const std::int32_t below = exponent < -14 ? -14 - exponent : 0;
            magnitude >>= below < 24 ? below : 24;
            exponent += below;
        }
        significand[i] = (bits >> 31) != 0 ? -magnitude : magnitude;
        own[i] = magnitude == 0 ? smallest : exponent - sum.scale_shift;
        g.exponent[i] = own[i] > smallest ? own[i] : smallest;
    }
    return any != 0;
}

/// Aligns the accumulators in g.low. `own` are their exponents before the common ones were found.
TESSERA_INLINE void align_accumulators(const Sum& sum, Group& g, const std::array<std::int32_t, group>& significand,
                                       const std::array<std::int32_t, group>& own)
{
    const int up = std::max(sum.model->fraction_bits - 23, 0);
    const int down = std::max(23 - sum.model->fraction_bits, 0);
    for (std::size_t i = 0; i < group; ++i) {
        const std::int32_t distance = g.exponent[i] - own[i] + down;
        const std::int32_t sign = significand[i] >> 31;
        const std::uint32_t magnitude = static_cast<std::uint32_t>((significand[i] ^ sign) - sign) << up;
        const auto cut = static_cast<std::int32_t>(magnitude >> (distance < 31 ? distance : 31));
        g.low[i] = (cut ^ sign) - sign;
    }
}

/// g.total * 2^(exponent - F) in the result's format, into g.c.
TESSERA_INLINE void round_results(const Sum& sum, Group& g)
{
    const int fraction_bits = sum.model->fraction_bits;
    const SumModel::Result result = sum.model->result;
    const std::uint32_t keep = result == SumModel::Result::f32_cut_to_13 ? 0xFFFF'FC00U : 0xFFFF'FFFFU;
    std::array<std::uint32_t, group> bits;
    for (std::size_t i = 0; i < group; ++i) {
        const auto field = static_cast<std::uint64_t>(std::int64_t{g.exponent[i]} - fraction_bits + 1023);
        const double value = g.total[i] * std::bit_cast<double>(field << 52);
        const auto nearest = static_cast<float>(value);
        const bool passed = std::fabs(double{nearest}) > std::fabs(value);
        const bool overflows = std::fabs(value) >= 0x1p128;
        std::uint32_t cut = std::bit_cast<std::uint32_t>(nearest) - (passed && !overflows ? 1U : 0U);
        if (result == SumModel::Result::f16_nearest) {
            // Round to odd, so that the rounding to f16 sees the cut bits.
            const bool inexact = double{std::bit_cast<float>(cut)} != value;
            cut |= inexact && !overflows ? 1U : 0U;
        }
        cut &= keep;
        bits[i] = (cut & 0x7FFF'FFFFU) == 0 ? 0U : cut;
    }
    if (result == SumModel::Result::f16_nearest) {
        for (std::size_t i = 0; i < group; ++i) {
            const std::uint32_t sign = bits[i] & 0x8000'0000U;
            const std::uint32_t magnitude = bits[i] & 0x7FFF'FFFFU;
            const std::uint32_t normal = (magnitude + 0xFFFU + ((magnitude >> 13) & 1U)) & 0xFFFF'E000U;
            // 0.5 has the last place of f16's subnormal numbers as its own.
            const float subnormal = (std::bit_cast<float>(magnitude) + 0.5F) - 0.5F;
            const std::uint32_t rounded = magnitude < 0x3880'0000U ? std::bit_cast<std::uint32_t>(subnormal) : normal;
            const std::uint32_t code = rounded >= 0x4780'0000U ? 0x7F80'0000U : rounded;
            bits[i] = code == 0 ? 0U : code | sign;
        }
    }
    for (std::size_t i = 0; i < group; ++i) {
        g.c[i] = std::bit_cast<float>(bits[i]);
    }
}

/// The element's value if an infinity or a NaN determines it.
std::optional<float> special_sum(const Sum& sum, std::size_t row, std::size_t column, float c)
{
    bool nan = c != c;
    bool plus = std::isinf(c) && c > 0;
    bool minus = std::isinf(c) && c < 0;
    for (std::size_t i = 0; i < sum.count; ++i) {
        const std::size_t k = sum.order[i];
        const std::int32_t sa = significand_of(sum.a->values(row)[k], sum.a->exponents(row)[k]);
        const std::int32_t sb = sum.b->significands()[k * sum.b->stride() + column];
        const bool a_special = sum.a->exponents(row)[k] == special_exponent;
        const bool b_special = sum.b->exponents()[k * sum.b->stride() + column] == special_exponent;
        if (a_special || b_special) {
            // NaN has significand 0, so NaN and infinity times zero are treated alike.
            nan = nan || sa * sb == 0;
            plus = plus || sa * sb > 0;
            minus = minus || sa * sb < 0;
        }
    }
    if (nan || (plus && minus)) {
        return std::bit_cast<float>(canonical_nan_f32);
    }
    if (plus || minus) {
        return plus ? HUGE_VALF : -HUGE_VALF;
    }
    return std::nullopt;
}

template <int Bytes>
TESSERA_INLINE void sum_group(const Sum& sum, std::size_t m, std::size_t column, std::size_t width)
{
    const int scaled_up = std::max(sum.model->fraction_bits - 2 * significand_bits, 0);
    const int extra_shift = std::max(2 * significand_bits - sum.model->fraction_bits, 0);
    Row row;
    for (std::size_t i = 0; i < sum.count; ++i) {
        const std::size_t k = sum.order[i];
        row.exponents[i] = sum.a->exponents(m)[k];
        row.significands[i] = significand_of(sum.a->values(m)[k], sum.a->exponents(m)[k]) * (1 << scaled_up);
    }
    const int row_scale = sum.scale_a != nullptr ? sum.scale_a[m] : 0;
    float* const d = sum.d + m * sum.ldd + column;
    Group g;
    std::array<std::int32_t, group> significand;
    g.c.fill(0.0F);
    std::copy_n(d, sum.accumulate ? width : 0, g.c.begin());
    std::array<std::int32_t, group> own;
    const bool special_c = split_accumulators(sum, g, significand, own);
    common_exponents<Bytes>(sum, row, column, row_scale, g);
    align_accumulators(sum, g, significand, own);
    add_products<Bytes>(sum, row, column, row_scale, extra_shift, g);
    round_results(sum, g);
    if (special_c || sum.a->largest_exponent(m) == special_exponent ||
        sum.b->largest_exponent(column / group) == special_exponent) {
        for (std::size_t i = 0; i < width; ++i) {
            const float before = sum.accumulate ? d[i] : 0.0F;
            g.c[i] = special_sum(sum, m, column + i, before).value_or(g.c[i]);
        }
    }
    std::copy_n(g.c.begin(), width, d);
}

#if TESSERA_HAS_WIDE_VECTORS
TESSERA_TARGET_V4 void sum_group_avx512(const Sum& sum, std::size_t m, std::size_t column, std::size_t width)
{
    sum_group<64>(sum, m, column, width);
}
TESSERA_TARGET_V3 void sum_group_avx2(const Sum& sum, std::size_t m, std::size_t column, std::size_t width)
{
    sum_group<32>(sum, m, column, width);
}
#endif

}  // namespace

void sum_any(const Sum& sum, std::size_t row, std::size_t column, std::size_t width)
{
#if TESSERA_HAS_WIDE_VECTORS
    switch (vector_unit()) {
        case VectorUnit::avx512: sum_group_avx512(sum, row, column, width); return;
        case VectorUnit::avx2: sum_group_avx2(sum, row, column, width); return;
        case VectorUnit::portable: break;
    }
#endif
    sum_group<16>(sum, row, column, width);
}

}  // namespace tessera::emulator::numerics::detail
