// The exact path of the floating-point kinds: aligned, truncated sums.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

#include "dispatch.hpp"
#include "exact_number.hpp"
#include "float_ops.hpp"
#include "tensor_sum.hpp"

namespace tessera::emulator::numerics {
namespace {

using detail::group;

constexpr std::size_t longest_k = 512;

/// The part of one sum that is the same for all its elements.
struct Sum {
    const SumModel* model;
    const ExactA* a;
    const ExactB* b;
    const std::uint16_t* order;  ///< which k, `count` of them
    std::size_t count;
    const std::int16_t* scale_a;  ///< exponents by row and column, or null
    const std::int16_t* scale_b;
    float* d;
    std::size_t ldd;
    bool accumulate;
    int scale_shift;
};

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

// One set of vector types per register size. Not templates of the size: GCC 12 ignores an attribute that depends on it.
template <int Bytes>
struct VectorTypes;
#define TESSERA_VECTOR_TYPES(BYTES, HALF)                                   \
    template <>                                                             \
    struct VectorTypes<BYTES> {                                             \
        using Int = std::int32_t __attribute__((vector_size(BYTES)));       \
        using Unsigned = std::uint32_t __attribute__((vector_size(BYTES))); \
        using Short = std::int16_t __attribute__((vector_size(HALF)));      \
    };
TESSERA_VECTOR_TYPES(16, 8)
TESSERA_VECTOR_TYPES(32, 16)
TESSERA_VECTOR_TYPES(64, 32)
#undef TESSERA_VECTOR_TYPES

/// Vectors of Bytes / 4 lanes. Results are returned by reference: a vector returned by value would depend on the ABI of
/// the instruction set, even if everything is inlined.
template <int Bytes>
struct Vector : VectorTypes<Bytes> {
    using typename VectorTypes<Bytes>::Int;
    using typename VectorTypes<Bytes>::Unsigned;
    using typename VectorTypes<Bytes>::Short;
    static constexpr std::size_t lanes = Bytes / 4;
    static constexpr std::size_t per_group = group / lanes;

    static TESSERA_INLINE void widen(const std::int16_t* from, Int& to)
    {
        Short narrow;
        __builtin_memcpy(&narrow, from, sizeof narrow);
        to = __builtin_convertvector(narrow, Int);
    }
    static TESSERA_INLINE void load(const std::int32_t* from, Int& to) { __builtin_memcpy(&to, from, sizeof to); }
    static TESSERA_INLINE void store(std::int32_t* to, const Int& from) { __builtin_memcpy(to, &from, sizeof from); }
};

/// Splits the accumulators and finds the common exponent of all terms of a group of columns. Products that 25 fraction
/// bits do not reach become zero, however small their exponent.
template <int Bytes>
TESSERA_INLINE void common_exponents(const Sum& sum, const Row& row, std::size_t column, int row_scale, Group& g)
{
    using V = Vector<Bytes>;
    using Int = typename V::Int;
    // Copies: the compiler must assume that storing a vector changes `sum`.
    const std::size_t count = sum.count;
    const std::size_t stride = sum.b->stride();
    const std::uint16_t* const order = sum.order;
    const std::int16_t* const exponents = sum.b->exponents() + column;
    for (std::size_t v = 0; v < V::per_group; ++v) {
        const std::size_t at = column + v * V::lanes;
        Int largest = Int{} + detail::zero_exponent * 4;
        Int e;
        for (std::size_t i = 0; i < count; ++i) {
            V::widen(exponents + order[i] * stride + v * V::lanes, e);
            e += row.exponents[i];
            largest = largest > e ? largest : e;
        }
        largest += row_scale;
        if (sum.scale_b != nullptr) {
            V::widen(sum.scale_b + at, e);
            largest += e;
        }
        V::load(g.exponent.data() + v * V::lanes, e);
        largest = largest > e ? largest : e;
        V::store(g.exponent.data() + v * V::lanes, largest);
    }
}

/// Adds the aligned products of a group of columns to g.total. Uses 32 bits while they fit: a product is less than 4,
/// the accumulator less than 2.
template <int Bytes>
TESSERA_INLINE void add_products(const Sum& sum, const Row& row, std::size_t column, int row_scale, int extra_shift,
                                 Group& g)
{
    using V = Vector<Bytes>;
    using Int = typename V::Int;
    using Unsigned = typename V::Unsigned;
    const std::size_t terms_in_32_bits = (std::size_t{1} << (29 - sum.model->fraction_bits)) - 1;
    const std::size_t all = sum.count;
    const std::size_t stride = sum.b->stride();
    const std::uint16_t* const order = sum.order;
    const std::int16_t* const significands = sum.b->significands() + column;
    const std::int16_t* const exponents = sum.b->exponents() + column;
    for (std::size_t first = 0; first < all; first += terms_in_32_bits) {
        const std::size_t last = std::min(all, first + terms_in_32_bits);
        for (std::size_t v = 0; v < V::per_group; ++v) {
            const std::size_t at = column + v * V::lanes;
            Int base;
            Int significand;
            Int exponent;
            V::load(g.exponent.data() + v * V::lanes, base);
            base += extra_shift - row_scale;
            if (sum.scale_b != nullptr) {
                V::widen(sum.scale_b + at, exponent);
                base -= exponent;
            }
            Int total{};
            if (first == 0) {
                V::load(g.low.data() + v * V::lanes, total);
            }
            for (std::size_t i = first; i < last; ++i) {
                const std::size_t offset = order[i] * stride + v * V::lanes;
                V::widen(significands + offset, significand);
                V::widen(exponents + offset, exponent);
                const Int product = significand * row.significands[i];
                const Int shift = base - row.exponents[i] - exponent;
                const Int sign = product >> 31;
                const auto magnitude = reinterpret_cast<Unsigned>((product ^ sign) - sign);
                const auto count = reinterpret_cast<Unsigned>(shift < 31 ? shift : Int{} + 31);
                total += (reinterpret_cast<Int>(magnitude >> count) ^ sign) - sign;
            }
            V::store(g.low.data() + v * V::lanes, total);
        }
        for (std::size_t i = 0; i < group; ++i) {
            g.total[i] = first == 0 ? double{0} + g.low[i] : g.total[i] + g.low[i];
        }
    }
}

/// Splits accumulators into significand (in g.low, aligned later) and exponent. Returns true if one is infinite or NaN.
TESSERA_INLINE bool split_accumulators(const Sum& sum, Group& g, std::array<std::int32_t, group>& significand)
{
    const bool is_f16 = sum.model->result == SumModel::Result::f16_nearest;
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
        exponent -= sum.scale_shift;
        significand[i] = (bits >> 31) != 0 ? -magnitude : magnitude;
        const bool is_zero = magnitude == 0 || exponent < detail::smallest_exponent;
        g.exponent[i] = is_zero ? detail::smallest_exponent : exponent;
        if (exponent < detail::smallest_exponent) {  // only after scale_shift
            significand[i] /= 1 << std::min(detail::smallest_exponent - exponent, 24);
        }
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
        const std::int32_t sa = sum.a->significands(row)[k];
        const std::int32_t sb = sum.b->significands()[k * sum.b->stride() + column];
        const bool a_special = sum.a->exponents(row)[k] == detail::special_exponent;
        const bool b_special = sum.b->exponents()[k * sum.b->stride() + column] == detail::special_exponent;
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
TESSERA_INLINE void sum_all(const Sum& sum)
{
    const int scaled_up = std::max(sum.model->fraction_bits - 2 * detail::significand_bits, 0);
    const int extra_shift = std::max(2 * detail::significand_bits - sum.model->fraction_bits, 0);
    const std::size_t n = sum.b->n();
    Row row;
    Group g;
    std::array<std::int32_t, group> significand;
    std::array<std::int32_t, group> own;
    for (std::size_t m = 0; m < sum.a->m(); ++m) {
        for (std::size_t i = 0; i < sum.count; ++i) {
            row.significands[i] = sum.a->significands(m)[sum.order[i]] * (1 << scaled_up);
            row.exponents[i] = sum.a->exponents(m)[sum.order[i]];
        }
        const int row_scale = sum.scale_a != nullptr ? sum.scale_a[m] : 0;
        for (std::size_t column = 0; column < n; column += group) {
            float* const d = sum.d + m * sum.ldd + column;
            const std::size_t width = std::min(group, n - column);
            if (sum.accumulate && width == group) {
                std::copy_n(d, group, g.c.begin());
            } else {
                g.c.fill(0.0F);
                std::copy_n(d, sum.accumulate ? width : 0, g.c.begin());
            }
            const bool special_c = split_accumulators(sum, g, significand);
            own = g.exponent;
            common_exponents<Bytes>(sum, row, column, row_scale, g);
            align_accumulators(sum, g, significand, own);
            add_products<Bytes>(sum, row, column, row_scale, extra_shift, g);
            round_results(sum, g);
            if (special_c || sum.a->is_special(m) || sum.b->has_special()) {
                for (std::size_t i = 0; i < width; ++i) {
                    const float before = sum.accumulate ? d[i] : 0.0F;
                    g.c[i] = special_sum(sum, m, column + i, before).value_or(g.c[i]);
                }
            }
            if (width == group) {
                std::copy_n(g.c.begin(), group, d);
            } else {
                std::copy_n(g.c.begin(), width, d);
            }
        }
    }
}

#if TESSERA_HAS_WIDE_VECTORS
TESSERA_TARGET_V4 void sum_all_avx512(const Sum& sum) { sum_all<64>(sum); }
TESSERA_TARGET_V3 void sum_all_avx2(const Sum& sum) { sum_all<32>(sum); }
#endif

void run_sum(const Sum& sum)
{
    if (sum.b->n() == 0) {
        return;
    }
#if TESSERA_HAS_WIDE_VECTORS
    switch (detail::vector_unit()) {
        case detail::VectorUnit::avx512: sum_all_avx512(sum); return;
        case detail::VectorUnit::avx2: sum_all_avx2(sum); return;
        case detail::VectorUnit::portable: break;
    }
#endif
    sum_all<16>(sum);
}

void check_shapes(const ExactA& a, const ExactB& b)
{
    if (a.k() != b.k() || a.k() > longest_k) {
        throw std::invalid_argument("A has K = " + std::to_string(a.k()) + " and B has K = " + std::to_string(b.k()) +
                                    ": they must be equal and at most " + std::to_string(longest_k));
    }
}

std::array<std::uint16_t, longest_k> in_order()
{
    std::array<std::uint16_t, longest_k> order{};
    for (std::size_t k = 0; k < longest_k; ++k) {
        order[k] = static_cast<std::uint16_t>(k);
    }
    return order;
}

/// The chain of sums of one instruction.
void run_chain(Sum sum, std::size_t k)
{
    static const std::array<std::uint16_t, longest_k> order = in_order();
    const std::size_t step = sum.model->products_per_sum;
    for (std::size_t first = 0; first < k; first += step) {
        sum.order = order.data() + first;
        sum.count = std::min(step, k - first);
        run_sum(sum);
        sum.accumulate = true;
        sum.scale_shift = 0;
    }
}

/// See SumModel::through_f16.
void run_through_f16(Sum sum, const Accumulation& how)
{
    const std::size_t k = sum.a->k();
    const std::size_t m = sum.a->m();
    const std::size_t n = sum.b->n();
    std::vector<float> products(m * n);
    std::array<std::uint16_t, longest_k> order{};
    const auto first_pairs = std::stable_partition(
        order.begin(),
        [&order, k] {
            const auto all = in_order();
            return std::copy(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(k), order.begin());
        }(),
        [](std::uint16_t index) { return index % 4 < 2; });
    const auto half = static_cast<std::size_t>(first_pairs - order.begin());
    float* const d = sum.d;
    const std::size_t ldd = sum.ldd;
    sum.d = products.data();
    sum.ldd = n;
    sum.accumulate = false;
    sum.order = order.data();
    sum.count = half;
    run_sum(sum);
    sum.accumulate = true;
    sum.order = order.data() + half;
    sum.count = k - half;
    run_sum(sum);
    const bool is_f16 = sum.model->result == SumModel::Result::f16_nearest;
    for (std::size_t row = 0; row < m; ++row) {
        for (std::size_t column = 0; column < n; ++column) {
            float& out = d[row * ldd + column];
            const float total = add_rn(how.accumulate ? out : 0.0F, products[row * n + column]);
            out = is_f16 ? float_from_f16(f16_from_float(total)) : total;
        }
    }
}

}  // namespace

SumModel sum_model(TensorUnit unit, Format a, Accumulator accumulator, std::size_t k)
{
    const bool is_fp8 = a == Format::e4m3 || a == Format::e5m2;
    SumModel model;
    model.result = accumulator == Accumulator::f16 ? SumModel::Result::f16_nearest : SumModel::Result::f32_cut;
    const auto keep_13_bits = [&model] {
        model.fraction_bits = 13;
        if (model.result == SumModel::Result::f32_cut) {
            model.result = SumModel::Result::f32_cut_to_13;
        }
    };
    switch (unit) {
        case TensorUnit::volta_mma:
            model.fraction_bits = 23;
            model.products_per_sum = 4;
            break;
        case TensorUnit::turing_mma:
            model.fraction_bits = 24;
            model.products_per_sum = 8;
            break;
        case TensorUnit::ampere_mma:
        case TensorUnit::ada_mma:
            model.fraction_bits = 24;
            model.products_per_sum = is_fp8 ? 16 : a == Format::tf32 ? 4 : 8;
            if (is_fp8) {
                keep_13_bits();
            }
            break;
        case TensorUnit::hopper_mma: model.through_f16 = is_fp8; break;
        case TensorUnit::hopper_wgmma:
            if (is_fp8) {
                keep_13_bits();
            }
            break;
        case TensorUnit::blackwell: break;
    }
    model.products_per_sum = std::min(model.products_per_sum, std::max<std::size_t>(k, 1));
    return model;
}

void multiply_exact(const SumModel& model, const ExactA& a, const ExactB& b, float* d, std::size_t ldd,
                    const Accumulation& how)
{
    check_shapes(a, b);
    const Sum sum{&model, &a, &b, nullptr, 0, nullptr, nullptr, d, ldd, how.accumulate, how.scale_shift};
    if (model.through_f16) {
        run_through_f16(sum, how);
    } else {
        run_chain(sum, a.k());
    }
}

void multiply_exact_mxf8(const SumModel& model, const ExactA& a, const ExactB& b, const std::uint8_t* scale_a,
                         const std::uint8_t* scale_b, float* d, std::size_t ldd, const Accumulation& how)
{
    check_shapes(a, b);
    std::vector<std::int16_t> rows(a.m());
    std::vector<std::int16_t> columns(b.stride());
    constexpr int bias = 127;
    for (std::size_t m = 0; m < a.m(); ++m) {
        rows[m] = static_cast<std::int16_t>(scale_a[m] - bias);
    }
    for (std::size_t n = 0; n < b.n(); ++n) {
        columns[n] = static_cast<std::int16_t>(scale_b[n] - bias);
    }
    run_chain({&model, &a, &b, nullptr, 0, rows.data(), columns.data(), d, ldd, how.accumulate, how.scale_shift},
              a.k());
    constexpr std::uint8_t nan_scale = 0xFF;
    for (std::size_t m = 0; m < a.m(); ++m) {
        for (std::size_t n = 0; n < b.n(); ++n) {
            if (scale_a[m] == nan_scale || scale_b[n] == nan_scale) {
                d[m * ldd + n] = std::bit_cast<float>(canonical_nan_f32);
            }
        }
    }
}

}  // namespace tessera::emulator::numerics
