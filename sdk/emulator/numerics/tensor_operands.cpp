// Decoding of operand tiles: to values and exponents for the exact path, to floats for the fast path.

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <string>

#include "dispatch.hpp"
#include "exact_number.hpp"
#include "tensor_sum.hpp"
#include "vectors.hpp"

namespace tessera::emulator::numerics {
namespace {

/// Cells of an operand for the exact path.
struct Cells {
    const void* codes;
    std::size_t count;
    std::uint32_t flip;  ///< the sign bit of an f32 if the operand is negated
    float* values;
    std::int16_t* exponents;
};

/// Decodes one vector of cells.
template <const Layout& layout, int Bytes>
TESSERA_INLINE void decode_vector(const typename detail::Vectors<Bytes>::Int& codes, std::int32_t flip,
                                  typename detail::Vectors<Bytes>::Int& bits,
                                  typename detail::Vectors<Bytes>::Int& exponent)
{
    using Int = typename detail::Vectors<Bytes>::Int;
    using Float = typename detail::Vectors<Bytes>::Float;
    constexpr auto sign_mask = static_cast<std::int32_t>(layout.sign_mask());
    constexpr std::int32_t rebias = (f32_layout.bias - layout.bias) << f32_layout.mantissa_bits;
    constexpr std::int32_t first_normal = 1 << f32_layout.mantissa_bits;
    constexpr std::int32_t smallest = 1 - layout.bias;
    const Int magnitude = codes & (sign_mask - 1);
    const Int sign = ((codes & sign_mask) << (f32_layout.sign_bit() - layout.sign_bit())) ^ flip;
    bits = (magnitude << (f32_layout.mantissa_bits - layout.mantissa_bits)) + rebias;
    if constexpr (layout.bias != f32_layout.bias) {
        // A subnormal number, with the smallest normal one added on both sides.
        const Float subnormal =
            reinterpret_cast<Float>(bits + first_normal) - std::bit_cast<float>(rebias + first_normal);
        bits = magnitude < (1 << layout.mantissa_bits) ? reinterpret_cast<Int>(subnormal) : bits;
    }
    exponent = (bits >> f32_layout.mantissa_bits) - f32_layout.bias;
    exponent = exponent > smallest ? exponent : Int{} + smallest;
    exponent = magnitude == 0 ? Int{} + detail::zero_exponent : exponent;
    if constexpr (layout.max_finite != sign_mask - 1) {
        const Int special = magnitude > static_cast<std::int32_t>(layout.max_finite);
        exponent = special ? Int{} + detail::special_exponent : exponent;
        bits = special ? Int{} + static_cast<std::int32_t>(canonical_nan_f32) : bits;
        if constexpr (layout.has_infinity) {
            constexpr auto infinity = static_cast<std::int32_t>(f32_layout.beyond);
            bits = magnitude == static_cast<std::int32_t>(layout.beyond) ? Int{} + infinity : bits;
        }
    }
    bits |= sign;
}

/// Decodes contiguous cells.
template <const Layout& layout, typename Cell, int Bytes>
TESSERA_INLINE void decode_cells(const Cells& cells)
{
    using V = detail::Vectors<Bytes>;
    using Packed = typename detail::CellVector<Cell, Bytes>::type;
    constexpr int pad = sizeof(Cell) == 4 ? 13 : 0;  // of tf32
    const auto flip = static_cast<std::int32_t>(cells.flip);
    const auto* const codes = static_cast<const Cell*>(cells.codes);
    const auto decode_at = [&](const Cell* from, float* values, std::int16_t* exponents) __attribute__((always_inline))
    {
        Packed packed;
        detail::load(from, packed);
        const auto widened = __builtin_convertvector(packed, typename V::Unsigned) >> pad;
        typename V::Int bits;
        typename V::Int exponent;
        decode_vector<layout, Bytes>(reinterpret_cast<typename V::Int>(widened), flip, bits, exponent);
        detail::store(values, bits);
        detail::store(exponents, __builtin_convertvector(exponent, typename V::Narrow));
    };
    std::size_t i = 0;
    for (; i + V::lanes <= cells.count; i += V::lanes) {
        decode_at(codes + i, cells.values + i, cells.exponents + i);
    }
    if (i != cells.count) {
        std::array<Cell, V::lanes> rest{};
        std::array<float, V::lanes> values;
        std::array<std::int16_t, V::lanes> exponents;
        std::copy_n(codes + i, cells.count - i, rest.begin());
        decode_at(rest.data(), values.data(), exponents.data());
        std::copy_n(values.begin(), cells.count - i, cells.values + i);
        std::copy_n(exponents.begin(), cells.count - i, cells.exponents + i);
    }
}

template <int Bytes>
TESSERA_INLINE void decode_format(Format format, const Cells& cells)
{
    switch (format) {
        case Format::f16: decode_cells<f16_layout, std::uint16_t, Bytes>(cells); return;
        case Format::bf16: decode_cells<bf16_layout, std::uint16_t, Bytes>(cells); return;
        case Format::tf32: decode_cells<tf32_layout, std::uint32_t, Bytes>(cells); return;
        case Format::e4m3: decode_cells<e4m3_layout, std::uint8_t, Bytes>(cells); return;
        case Format::e5m2: decode_cells<e5m2_layout, std::uint8_t, Bytes>(cells); return;
        case Format::e2m3: decode_cells<e2m3_layout, std::uint8_t, Bytes>(cells); return;
        case Format::e3m2: decode_cells<e3m2_layout, std::uint8_t, Bytes>(cells); return;
        case Format::e2m1: decode_cells<e2m1_layout, std::uint8_t, Bytes>(cells); return;
        default: break;
    }
    throw std::invalid_argument(
        std::string("format ") + format_name(format) +
        " is not an operand type of the tensor cores: use f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2 or e2m1");
}

#if TESSERA_HAS_WIDE_VECTORS
TESSERA_TARGET_V4 void decode_avx512(Format format, const Cells& cells) { decode_format<64>(format, cells); }
TESSERA_TARGET_V3 void decode_avx2(Format format, const Cells& cells) { decode_format<32>(format, cells); }
#endif

void decode(Format format, const Cells& cells)
{
#if TESSERA_HAS_WIDE_VECTORS
    switch (detail::vector_unit()) {
        case detail::VectorUnit::avx512: decode_avx512(format, cells); return;
        case detail::VectorUnit::avx2: decode_avx2(format, cells); return;
        case detail::VectorUnit::portable: break;
    }
#endif
    decode_format<16>(format, cells);
}

/// `lines` of `length` cells each.
struct Lines {
    const void* codes;
    std::ptrdiff_t stride;  ///< between lines
    std::ptrdiff_t step;    ///< between the cells of a line
    std::size_t lines, length;
};

/// Takes cells of a and b in turn: of the first halves to `low`, of the second halves to `high`.
TESSERA_INLINE void interleave(const detail::CellVector<std::uint8_t, 64>::type& a,
                               const detail::CellVector<std::uint8_t, 64>::type& b,
                               detail::CellVector<std::uint8_t, 64>::type& low,
                               detail::CellVector<std::uint8_t, 64>::type& high)
{
    low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    high = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
TESSERA_INLINE void interleave(const detail::CellVector<std::uint16_t, 32>::type& a,
                               const detail::CellVector<std::uint16_t, 32>::type& b,
                               detail::CellVector<std::uint16_t, 32>::type& low,
                               detail::CellVector<std::uint16_t, 32>::type& high)
{
    low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
TESSERA_INLINE void interleave(const detail::CellVector<std::uint32_t, 16>::type& a,
                               const detail::CellVector<std::uint32_t, 16>::type& b,
                               detail::CellVector<std::uint32_t, 16>::type& low,
                               detail::CellVector<std::uint32_t, 16>::type& high)
{
    low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
}

/// Writes cell `i` of line `l` to to[i * to_stride + l].
template <typename Cell>
void transpose(const Lines& from, Cell* to, std::size_t to_stride)
{
    using Vector = typename detail::CellVector<Cell, 64 / sizeof(Cell)>::type;
    constexpr std::size_t side = 16 / sizeof(Cell);
    const auto* const cells = static_cast<const Cell*>(from.codes);
    const std::size_t whole = from.step == 1 ? from.length / side * side : 0;
    const std::size_t whole_lines = from.lines / side * side;
    for (std::size_t line = 0; line < whole_lines; line += side) {
        const Cell* const first = cells + static_cast<std::ptrdiff_t>(line) * from.stride;
        for (std::size_t i = 0; i < whole; i += side) {
            std::array<Vector, side> block;
            std::array<Vector, side> next;
            for (std::size_t l = 0; l < side; ++l) {
                __builtin_memcpy(&block[l], first + static_cast<std::ptrdiff_t>(l) * from.stride + i, 16);
            }
            // Each pass riffles the two halves of the block, so that after log2(side) of them it is transposed.
            for (std::size_t pass = 1; pass < side; pass *= 2) {
                for (std::size_t l = 0; l < side / 2; ++l) {
                    interleave(block[l], block[l + side / 2], next[2 * l], next[2 * l + 1]);
                }
                block = next;
            }
            for (std::size_t l = 0; l < side; ++l) {
                __builtin_memcpy(to + (i + l) * to_stride + line, &block[l], 16);
            }
        }
    }
    for (std::size_t line = 0; line < from.lines; ++line) {
        const Cell* const first = cells + static_cast<std::ptrdiff_t>(line) * from.stride;
        for (std::size_t i = line < whole_lines ? whole : 0; i < from.length; ++i) {
            to[i * to_stride + line] = first[static_cast<std::ptrdiff_t>(i) * from.step];
        }
    }
}

std::size_t cell_bytes(Format format)
{
    const int bits = element_bits(format);
    return bits <= 8 ? 1 : bits == 16 ? 2 : 4;
}

/// Decodes `outer` lines of `inner` cells each, `inner_step` 1 or not, to lines with the stride `to_stride`.
/// `transposed` is room for cells that are not in that order.
void decode_lines(const CodeView& codes, std::size_t lines, std::size_t length, std::ptrdiff_t line_stride,
                  std::ptrdiff_t step, ExactNumbers& to, std::size_t to_stride, std::vector<std::byte>& transposed)
{
    const std::size_t bytes = cell_bytes(codes.format);
    const std::uint32_t flip = codes.negate ? 0x8000'0000U : 0U;
    const void* from = codes.codes;
    auto from_stride = static_cast<std::size_t>(line_stride);
    if (step != 1) {
        // Read in the other order: in memory, the cells of one place of all lines are neighbours.
        transposed.resize(lines * to_stride * bytes);
        const Lines other{codes.codes, step, line_stride, length, lines};
        switch (bytes) {
            case 1: transpose(other, reinterpret_cast<std::uint8_t*>(transposed.data()), to_stride); break;
            case 2: transpose(other, reinterpret_cast<std::uint16_t*>(transposed.data()), to_stride); break;
            default: transpose(other, reinterpret_cast<std::uint32_t*>(transposed.data()), to_stride); break;
        }
        from = transposed.data();
        from_stride = to_stride;
    }
    if (from_stride == to_stride && length == to_stride) {
        decode(codes.format, {from, lines * length, flip, to.values.data(), to.exponents.data()});
        return;
    }
    for (std::size_t line = 0; line < lines; ++line) {
        const auto* const first = static_cast<const std::byte*>(from) + line * from_stride * bytes;
        decode(codes.format,
               {first, length, flip, to.values.data() + line * to_stride, to.exponents.data() + line * to_stride});
    }
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
    numbers_.resize(m * k);
    decode_lines(codes, m, k, codes.outer_stride, codes.k_stride, numbers_, k, transposed_);
    largest_.resize(m);
    for (std::size_t row = 0; row < m; ++row) {
        const std::int16_t* const of_row = exponents(row);
        std::int16_t largest = detail::zero_exponent;
        for (std::size_t i = 0; i < k; ++i) {
            largest = std::max(largest, of_row[i]);
        }
        largest_[row] = largest;
    }
}

void ExactB::assign(const CodeView& codes, std::size_t n, std::size_t k)
{
    constexpr std::size_t step = 8;
    n_ = n;
    k_ = k;
    stride_ = (n + step - 1) / step * step;
    significands_.clear();
    numbers_.resize(stride_ * k + detail::group);
    decode_lines(codes, k, n, codes.k_stride, codes.outer_stride, numbers_, stride_, transposed_);
    for (std::size_t i = 0; n != stride_ && i < k; ++i) {
        std::fill_n(numbers_.exponents.begin() + static_cast<std::ptrdiff_t>(i * stride_ + n), stride_ - n,
                    detail::zero_exponent);
    }
    largest_.assign((n + detail::group - 1) / detail::group, detail::zero_exponent);
    for (std::size_t first = 0; first < n; first += step) {
        detail::Vectors<16>::Short largest{};
        largest += detail::zero_exponent;
        for (std::size_t i = 0; i < k; ++i) {
            detail::Vectors<16>::Short exponent;
            detail::load(exponents() + i * stride_ + first, exponent);
            largest = largest > exponent ? largest : exponent;
        }
        for (std::size_t column = 0; column < step; ++column) {
            std::int16_t& of_group = largest_[first / detail::group];
            of_group = std::max(of_group, std::int16_t{largest[column]});
        }
    }
}

const std::int16_t* ExactB::significands() const
{
    if (significands_.empty()) {
        significands_.resize(stride_ * k_ + detail::group);
        for (std::size_t i = 0; i < k_; ++i) {
            for (std::size_t column = 0; column < n_; ++column) {
                const std::size_t at = i * stride_ + column;
                significands_[at] =
                    static_cast<std::int16_t>(detail::significand_of(numbers_.values[at], numbers_.exponents[at]));
            }
        }
    }
    return significands_.data();
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
