// Aligned, cut sums by float arithmetic. See exact_sum_any.cpp for the sums that do not fit.

#include <algorithm>
#include <bit>

#include "dispatch.hpp"
#include "exact_number.hpp"
#include "exact_sum.hpp"
#include "vectors.hpp"

namespace tessera::emulator::numerics::detail {
namespace {

/// Below this common exponent, products could be subnormal in f32.
constexpr std::int32_t smallest_usual_exponent = -100;
/// Products with exponents up to this are finite in f32.
constexpr std::int32_t largest_product_exponent = 125;
constexpr std::int32_t largest_usual_exponent = 127;
constexpr std::int32_t f32_bias = 127;

/// The terms of one row of A in the order of the sum.
struct Row {
    std::array<float, longest_k> values;
    std::array<std::uint32_t, longest_k> exponents;  ///< each twice, in both halves
    std::array<std::uint32_t, longest_k> offsets;    ///< of row k of B
};

/// `Count` vectors of columns.
template <int Bytes, std::size_t Count>
struct Block {
    using V = Vectors<Bytes>;
    using Int = typename V::Int;
    using Float = typename V::Float;
    using Exponents = Vectors<Bytes / 2 * static_cast<int>(Count)>;  ///< 16-bit exponents of all columns
    static constexpr std::size_t columns = V::lanes * Count;

    Int exponent[Count];  ///< the common one
    Int total[Count];
    Int unusual[Count];  ///< not 0: the lane needs sum_any()
};

template <int Bytes>
TESSERA_INLINE void power_of_two(const typename Vectors<Bytes>::Int& exponent, typename Vectors<Bytes>::Float& power)
{
    power = reinterpret_cast<typename Vectors<Bytes>::Float>((exponent + f32_bias) << 23);
}

/// The largest exponents of the products.
template <int Bytes, std::size_t Count>
TESSERA_INLINE void product_exponents(const Sum& sum, const Row& row, std::size_t column, Block<Bytes, Count>& block)
{
    using E = typename Block<Bytes, Count>::Exponents;
    using Short = typename E::Short;
    const std::int16_t* const exponents = sum.b->exponents() + column;
    const std::size_t count = sum.count;
    Short largest = Short{} + static_cast<std::int16_t>(2 * zero_exponent);
    for (std::size_t i = 0; i < count; ++i) {
        Short e;
        load(exponents + row.offsets[i], e);
        e += reinterpret_cast<Short>(typename E::Unsigned{} + row.exponents[i]);
        largest = largest > e ? largest : e;
    }
    typename Vectors<Bytes>::Narrow narrow[Count];
    static_assert(sizeof narrow == sizeof largest);
    const Short all = largest;  // a copy, so that `largest` stays in a register
    __builtin_memcpy(narrow, &all, sizeof narrow);
    for (std::size_t v = 0; v < Count; ++v) {
        block.exponent[v] = __builtin_convertvector(narrow[v], typename Vectors<Bytes>::Int);
    }
}

/// Adds the products, cut at 2^-fraction_bits of the common exponent. A product is less than 4, so that many fit in 32
/// bits; these sums and the accumulator are added with a check.
template <int Bytes, std::size_t Count>
TESSERA_INLINE void add_products(const Sum& sum, const Row& row, std::size_t column,
                                 const typename Vectors<Bytes>::Float (&scale)[Count], Block<Bytes, Count>& block)
{
    using V = Vectors<Bytes>;
    using Int = typename V::Int;
    using Unsigned = typename V::Unsigned;
    const std::size_t products_in_32_bits = std::size_t{1} << (29 - sum.model->fraction_bits);
    const std::size_t count = sum.count;
    const float* const values = sum.b->values() + column;
    for (std::size_t first = 0; first < count; first += products_in_32_bits) {
        const std::size_t last = std::min(count, first + products_in_32_bits);
        Int part[Count] = {};
        for (std::size_t i = first; i < last; ++i) {
            const float* const from = values + row.offsets[i];
            for (std::size_t v = 0; v < Count; ++v) {
                typename V::Float product;
                load(from + v * V::lanes, product);
                product = product * row.values[i] * scale[v];
                part[v] += __builtin_convertvector(product, Int);
            }
        }
        for (std::size_t v = 0; v < Count; ++v) {
            const Int before = block.total[v];
            const auto total = reinterpret_cast<Unsigned>(before) + reinterpret_cast<Unsigned>(part[v]);
            block.total[v] = reinterpret_cast<Int>(total);
            block.unusual[v] |= ((before ^ block.total[v]) & (part[v] ^ block.total[v])) < 0;
        }
    }
}

/// Rounds to nearest even to f16, as a float. Zero is +0.
template <int Bytes>
TESSERA_INLINE void round_to_f16(typename Vectors<Bytes>::Float& value)
{
    using Int = typename Vectors<Bytes>::Int;
    using Float = typename Vectors<Bytes>::Float;
    const Int bits = reinterpret_cast<Int>(value);
    const Int magnitude = bits & 0x7FFF'FFFF;
    const Int normal = (magnitude + 0xFFF + ((magnitude >> 13) & 1)) & ~0x1FFF;
    // 0.5 has the last place of f16's subnormal numbers as its own.
    const Float subnormal = (reinterpret_cast<Float>(magnitude) + 0.5F) - 0.5F;
    Int rounded = magnitude < 0x3880'0000 ? reinterpret_cast<Int>(subnormal) : normal;
    rounded = rounded >= 0x4780'0000 ? Int{} + 0x7F80'0000 : rounded;
    const Int sign = bits & static_cast<std::int32_t>(0x8000'0000U);
    value = reinterpret_cast<Float>(rounded == 0 ? rounded : rounded | sign);
}

/// total * 2^(exponent - F) in the result's format. The common exponent is so large that no result is subnormal.
template <int Bytes>
TESSERA_INLINE void round_total(const SumModel& model, const typename Vectors<Bytes>::Int& total,
                                const typename Vectors<Bytes>::Int& exponent, typename Vectors<Bytes>::Float& result)
{
    using Int = typename Vectors<Bytes>::Int;
    using Float = typename Vectors<Bytes>::Float;
    const bool is_f16 = model.result == SumModel::Result::f16_nearest;
    const Int sign = total & static_cast<std::int32_t>(0x8000'0000U);
    const Int magnitude = total < 0 ? -total : total;
    // Clears the bit below the 24 that f32 keeps: the conversion then rounds down.
    const Int kept = magnitude & ~(magnitude >> 24);
    Float value = __builtin_convertvector(kept, Float);
    if (is_f16) {
        // Round to odd, so that the rounding to f16 sees the cut bits.
        const Int inexact = __builtin_convertvector(value, Int) != magnitude;
        value = reinterpret_cast<Float>(reinterpret_cast<Int>(value) | (inexact & 1));
    }
    Float scale;
    power_of_two<Bytes>(exponent - model.fraction_bits, scale);
    value *= scale;  // infinite if it is beyond the range of f32
    if (model.result == SumModel::Result::f32_cut_to_13) {
        value = reinterpret_cast<Float>(reinterpret_cast<Int>(value) & ~0x3FF);
    }
    result = reinterpret_cast<Float>(reinterpret_cast<Int>(value) | sign);
    if (is_f16) {
        round_to_f16<Bytes>(result);
    }
}

/// Columns [column, column + columns) of one row. `c` has their accumulators and gets the results. Returns false if a
/// lane needs sum_any().
template <int Bytes, std::size_t Count, bool Scaled>
TESSERA_INLINE bool sum_block(const Sum& sum, const Row& row, std::size_t column, int row_scale, float* c)
{
    using V = Vectors<Bytes>;
    using Int = typename V::Int;
    using Float = typename V::Float;
    const SumModel& model = *sum.model;
    const int fraction_bits = model.fraction_bits;
    const std::int32_t floor = std::max(model.smallest_exponent, smallest_usual_exponent);
    const bool can_be_too_small = model.smallest_exponent < smallest_usual_exponent;
    Block<Bytes, Count> block;
    product_exponents(sum, row, column, block);
    Float scale[Count];
    for (std::size_t v = 0; v < Count; ++v) {
        Int product_scale{};
        if constexpr (Scaled) {
            widen<Bytes>(sum.scale_b + column + v * V::lanes, product_scale);
            product_scale += row_scale;
        }
        Int largest = block.exponent[v] + product_scale;
        Float addend{};
        block.unusual[v] = Int{};
        if (sum.accumulate) {
            load(c + v * V::lanes, addend);
            const Int magnitude = reinterpret_cast<Int>(addend) & 0x7FFF'FFFF;
            const Int field = magnitude >> 23;
            Int own = (field > 1 ? field : Int{} + 1) - f32_bias;
            if (model.result == SumModel::Result::f16_nearest) {  // a subnormal f16 keeps its range's exponent
                own = own > -14 ? own : Int{} - 14;
            }
            own = magnitude == 0 ? Int{} + 2 * zero_exponent : own - sum.scale_shift;
            largest = largest > own ? largest : own;
            block.unusual[v] = field == 0xFF;
        }
        if (can_be_too_small) {
            block.unusual[v] |= (largest > largest_zero_exponent) & (largest < floor);
        }
        block.unusual[v] |= largest > largest_usual_exponent;
        largest = largest > floor ? largest : Int{} + floor;
        block.exponent[v] = largest;
        power_of_two<Bytes>(fraction_bits - sum.scale_shift - largest, scale[v]);
        block.total[v] = __builtin_convertvector(addend * scale[v], Int);
        if constexpr (Scaled) {
            Int power = fraction_bits - largest + product_scale;
            power = power > 1 - f32_bias ? power : Int{} + (1 - f32_bias);  // such a product is cut to zero anyway
            power = power < f32_bias ? power : Int{} + f32_bias;            // all products are zero
            power_of_two<Bytes>(power, scale[v]);
        } else {
            power_of_two<Bytes>(fraction_bits - largest, scale[v]);
        }
    }
    add_products<Bytes, Count>(sum, row, column, scale, block);
    Int unusual{};
    for (std::size_t v = 0; v < Count; ++v) {
        Float result;
        round_total<Bytes>(model, block.total[v], block.exponent[v], result);
        store(c + v * V::lanes, result);
        unusual |= block.unusual[v];
    }
    return !any<Bytes>(unusual);
}

template <int Bytes, std::size_t Count, bool Scaled>
TESSERA_INLINE void sum_all(const Sum& sum)
{
    constexpr std::size_t columns = Block<Bytes, Count>::columns;
    const std::size_t n = sum.b->n();
    Row row;
    for (std::size_t i = 0; i < sum.count; ++i) {
        row.offsets[i] = static_cast<std::uint32_t>(sum.order[i] * sum.b->stride());
    }
    std::array<float, group> c{};
    for (std::size_t m = 0; m < sum.a->m(); ++m) {
        for (std::size_t i = 0; i < sum.count; ++i) {
            const auto exponent = static_cast<std::uint16_t>(sum.a->exponents(m)[sum.order[i]]);
            row.values[i] = sum.a->values(m)[sum.order[i]];
            row.exponents[i] = exponent * 0x1'0001U;
        }
        const int row_scale = Scaled ? sum.scale_a[m] : 0;
        for (std::size_t column = 0; column < n; column += group) {
            float* const d = sum.d + m * sum.ldd + column;
            const std::size_t width = std::min(group, n - column);
            const bool usual =
                sum.a->largest_exponent(m) + sum.b->largest_exponent(column / group) <= largest_product_exponent;
            bool done = usual;
            if (usual) {
                if (width == group) {
                    std::copy_n(d, group, c.begin());
                } else {
                    c.fill(0.0F);
                    std::copy_n(d, width, c.begin());
                }
                for (std::size_t first = 0; first < width && done; first += columns) {
                    done = sum_block<Bytes, Count, Scaled>(sum, row, column + first, row_scale, c.data() + first);
                }
            }
            if (!done) {
                sum_any(sum, m, column, width);
            } else if (width == group) {
                std::copy_n(c.begin(), group, d);
            } else {
                std::copy_n(c.begin(), width, d);
            }
        }
    }
}

template <int Bytes>
TESSERA_INLINE void sum_tile(const Sum& sum)
{
    if (sum.scale_b != nullptr) {
        sum_all<Bytes, 2, true>(sum);
    } else {
        sum_all<Bytes, 2, false>(sum);
    }
}

#if TESSERA_HAS_WIDE_VECTORS
TESSERA_TARGET_V4 void sum_tile_avx512(const Sum& sum) { sum_tile<64>(sum); }
TESSERA_TARGET_V3 void sum_tile_avx2(const Sum& sum) { sum_tile<32>(sum); }
TESSERA_TARGET_V3 void sum_narrow_avx2(const Sum& sum) { sum_all<32, 1, false>(sum); }
#endif

}  // namespace

void sum_usual(const Sum& sum)
{
    if (sum.b->n() == 0) {
        return;
    }
#if TESSERA_HAS_WIDE_VECTORS
    constexpr std::size_t narrow = 8;  // mma.sync
    const VectorUnit unit = vector_unit();
    if (unit != VectorUnit::portable && sum.b->n() <= narrow && sum.scale_b == nullptr) {
        sum_narrow_avx2(sum);
        return;
    }
    switch (unit) {
        case VectorUnit::avx512: sum_tile_avx512(sum); return;
        case VectorUnit::avx2: sum_tile_avx2(sum); return;
        case VectorUnit::portable: break;
    }
#endif
    sum_tile<16>(sum);
}

}  // namespace tessera::emulator::numerics::detail
