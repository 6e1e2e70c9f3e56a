// Decoding of operand tiles: to significands and exponents for the exact path, to floats for the fast path.

#include <bit>
#include <stdexcept>

#include "exact_number.hpp"
#include "tensor_sum.hpp"

namespace tessera::emulator::numerics {
namespace {

using detail::Number;

Number split(const Layout& layout, std::uint32_t code)
{
    const auto magnitude = code & static_cast<std::uint32_t>(layout.sign_mask() - 1);
    const bool negative = (code & static_cast<std::uint32_t>(layout.sign_mask())) != 0;
    Number number;
    if (magnitude > layout.max_finite) {
        const bool infinite = layout.has_infinity && magnitude == layout.beyond;
        number.significand = infinite ? detail::significand_one : 0;
        number.exponent = detail::special_exponent;
    } else if (magnitude != 0) {
        const auto field = static_cast<int>(magnitude >> layout.mantissa_bits);
        const std::uint32_t fraction = magnitude & ((1U << layout.mantissa_bits) - 1U);
        const std::uint32_t significand = field == 0 ? fraction : fraction | (1U << layout.mantissa_bits);
        number.significand =
            static_cast<std::int16_t>(significand << (detail::significand_bits - layout.mantissa_bits));
        number.exponent = static_cast<std::int16_t>((field == 0 ? 1 : field) - layout.bias);
    }
    if (negative) {
        number.significand = static_cast<std::int16_t>(-number.significand);
    }
    return number;
}

struct SmallTable {
    std::array<Number, 256> numbers;
};

SmallTable make_table(const Layout& layout)
{
    SmallTable table;
    const auto mask = static_cast<std::uint32_t>(2 * layout.sign_mask() - 1);
    for (std::uint32_t code = 0; code < 256; ++code) {
        table.numbers[code] = split(layout, code & mask);
    }
    return table;
}

const SmallTable& small_table(Format format)
{
    static const SmallTable e4m3 = make_table(e4m3_layout);
    static const SmallTable e5m2 = make_table(e5m2_layout);
    static const SmallTable e2m3 = make_table(e2m3_layout);
    static const SmallTable e3m2 = make_table(e3m2_layout);
    static const SmallTable e2m1 = make_table(e2m1_layout);
    switch (format) {
        case Format::e4m3: return e4m3;
        case Format::e5m2: return e5m2;
        case Format::e2m3: return e2m3;
        case Format::e3m2: return e3m2;
        case Format::e2m1: return e2m1;
        default: break;
    }
    throw std::invalid_argument(
        std::string("format ") + format_name(format) +
        " is not an operand type of the tensor cores: use f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2 or e2m1");
}

/// Calls store(outer, k, number) for every element.
template <typename Store>
void for_each_number(const CodeView& codes, std::size_t outer, std::size_t k, Store store)
{
    const auto walk = [&](const auto* cells, auto decode) {
        for (std::size_t row = 0; row < outer; ++row) {
            const auto* const first = cells + static_cast<std::ptrdiff_t>(row) * codes.outer_stride;
            for (std::size_t i = 0; i < k; ++i) {
                Number number = decode(first[static_cast<std::ptrdiff_t>(i) * codes.k_stride]);
                if (codes.negate) {
                    number.significand = static_cast<std::int16_t>(-number.significand);
                }
                store(row, i, number);
            }
        }
    };
    switch (codes.format) {
        case Format::f16:
            walk(static_cast<const std::uint16_t*>(codes.codes),
                 [](std::uint16_t code) { return split(f16_layout, code); });
            return;
        case Format::bf16:
            walk(static_cast<const std::uint16_t*>(codes.codes),
                 [](std::uint16_t code) { return split(bf16_layout, code); });
            return;
        case Format::tf32:
            walk(static_cast<const std::uint32_t*>(codes.codes),
                 [](std::uint32_t word) { return split(tf32_layout, word >> 13); });
            return;
        default: break;
    }
    const SmallTable& table = small_table(codes.format);
    walk(static_cast<const std::uint8_t*>(codes.codes), [&table](std::uint8_t code) { return table.numbers[code]; });
}

template <typename Cell, typename Decode>
void decode_rows(const CodeView& codes, std::size_t outer, std::size_t k, float* values, std::size_t outer_stride,
                 std::size_t k_stride, Decode decode)
{
    const auto* const cells = static_cast<const Cell*>(codes.codes);
    const std::uint32_t flip = codes.negate ? 0x8000'0000U : 0U;
    const auto convert = [flip, decode](Cell cell) {
        const auto bits = std::bit_cast<std::uint32_t>(decode(cell));
        return std::bit_cast<float>(bits ^ flip);
    };
    if (codes.outer_stride == 1) {  // follow the order of memory
        for (std::size_t i = 0; i < k; ++i) {
            const Cell* const from = cells + static_cast<std::ptrdiff_t>(i) * codes.k_stride;
            for (std::size_t row = 0; row < outer; ++row) {
                values[row * outer_stride + i * k_stride] = convert(from[row]);
            }
        }
        return;
    }
    for (std::size_t row = 0; row < outer; ++row) {
        const Cell* const from = cells + static_cast<std::ptrdiff_t>(row) * codes.outer_stride;
        for (std::size_t i = 0; i < k; ++i) {
            values[row * outer_stride + i * k_stride] = convert(from[static_cast<std::ptrdiff_t>(i) * codes.k_stride]);
        }
    }
}

}  // namespace

void ExactA::assign(const CodeView& codes, std::size_t m, std::size_t k)
{
    m_ = m;
    k_ = k;
    significands_.resize(m * k);
    exponents_.resize(m * k);
    special_.assign(m, 0);
    for_each_number(codes, m, k, [this](std::size_t row, std::size_t i, Number number) {
        significands_[row * k_ + i] = number.significand;
        exponents_[row * k_ + i] = number.exponent;
        if (number.exponent == detail::special_exponent) {
            special_[row] = 1;
        }
    });
}

void ExactB::assign(const CodeView& codes, std::size_t n, std::size_t k)
{
    n_ = n;
    k_ = k;
    stride_ = (n + detail::group - 1) / detail::group * detail::group;
    has_special_ = false;
    significands_.assign(stride_ * k, 0);
    exponents_.assign(stride_ * k, detail::zero_exponent);
    special_.assign(n, 0);
    for_each_number(codes, n, k, [this](std::size_t column, std::size_t i, Number number) {
        significands_[i * stride_ + column] = number.significand;
        exponents_[i * stride_ + column] = number.exponent;
        if (number.exponent == detail::special_exponent) {
            special_[column] = 1;
            has_special_ = true;
        }
    });
}

void decode_tile(const CodeView& codes, std::size_t outer, std::size_t k, float* values, std::size_t outer_stride,
                 std::size_t k_stride)
{
    switch (codes.format) {
        case Format::f16:
            decode_rows<std::uint16_t>(codes, outer, k, values, outer_stride, k_stride,
                                       [](std::uint16_t code) { return float_from_f16(code); });
            return;
        case Format::bf16:
            decode_rows<std::uint16_t>(codes, outer, k, values, outer_stride, k_stride,
                                       [](std::uint16_t code) { return float_from_bf16(code); });
            return;
        case Format::tf32:
            decode_rows<std::uint32_t>(codes, outer, k, values, outer_stride, k_stride, [](std::uint32_t word) {
                const std::uint32_t bits = word & 0xFFFF'E000U;
                return std::bit_cast<float>((bits & 0x7FFF'FFFFU) > 0x7F80'0000U ? canonical_nan_f32 : bits);
            });
            return;
        default: break;
    }
    std::array<float, 256> table{};
    for (std::uint32_t code = 0; code < table.size(); ++code) {
        table[code] = decode(codes.format, code);
    }
    decode_rows<std::uint8_t>(codes, outer, k, values, outer_stride, k_stride,
                              [&table](std::uint8_t code) { return table[code]; });
}

void scale_tile(float* values, std::size_t outer, std::size_t k, std::size_t outer_stride, std::size_t k_stride,
                Format scale_format, const std::uint8_t* scales, std::size_t per_row)
{
    const std::size_t block = (k + per_row - 1) / per_row;
    for (std::size_t row = 0; row < outer; ++row) {
        for (std::size_t i = 0; i < k; ++i) {
            values[row * outer_stride + i * k_stride] *= decode(scale_format, scales[row * per_row + i / block]);
        }
    }
}

}  // namespace tessera::emulator::numerics
