#pragma once

/// For the tests of mma.sync's narrow and sparse forms: operands of one tile whose sums are exact, their scale factors, and the
/// comparison with the products in f64.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "mma_sync_tile.hpp"
#include "tessera/device/mma_spec.hpp"
#include "tessera/element.hpp"

namespace tessera::test {

/// A format, and where its code is in an object.
struct Format {
    const char* name;
    OperandType type;
    int exponent_bits, significand_bits, bias;
    unsigned bytes, shift;
    bool packed = false;  ///< two in an object
};
inline constexpr Format pair_format{"e2m1 pairs", OperandType::e2m1, 2, 1, 1, 1, 0, true};
inline constexpr std::array<Format, 5> byte_formats{{{"e4m3", OperandType::e4m3, 4, 3, 7, 1, 0},
                                                     {"e5m2", OperandType::e5m2, 5, 2, 15, 1, 0},
                                                     {"e2m3", OperandType::e2m3, 2, 3, 1, 1, 0},
                                                     {"e3m2", OperandType::e3m2, 3, 2, 3, 1, 0},
                                                     {"e2m1", OperandType::e2m1, 2, 1, 1, 1, 2}}};

inline double value_of(const Format& format, unsigned code)
{
    const unsigned fraction = code & ((1U << format.significand_bits) - 1U);
    const auto exponent = static_cast<int>(code >> format.significand_bits & ((1U << format.exponent_bits) - 1U));
    const bool negative = (code >> (format.significand_bits + format.exponent_bits)) != 0;
    const double hidden = exponent == 0 ? 0.0 : std::ldexp(1.0, format.significand_bits);
    const double magnitude =
        std::ldexp(hidden + fraction, std::max(exponent, 1) - format.bias - format.significand_bits);
    return negative ? -magnitude : magnitude;
}

/// Rows of tile_row_bytes bytes, and the values in them.
struct Operand {
    std::vector<std::uint8_t> bytes{};
    std::vector<double> values{};
    std::size_t k = 0;  ///< values of a row
};

/// An operand of `rows` rows. What surrounds elements of fewer than 8 bits is random.
/// @param nonzero  objects of each `chunk` that may be other than zero, at random places
/// @param random_code  called for the code of each of their elements
template <class RandomCode>
Operand random_operand(const Format& format, std::size_t rows, unsigned chunk, unsigned nonzero,
                       std::mt19937_64& engine, const RandomCode& random_code)
{
    Operand operand{.k = std::size_t{tile_row_bytes} / format.bytes * (format.packed ? 2 : 1)};
    const int bits = 1 + format.exponent_bits + format.significand_bits;
    const unsigned mask = format.bytes > 1 || format.packed ? ~0U : ((1U << bits) - 1U) << format.shift;
    unsigned left = 0;  // that this chunk may have
    for (std::size_t i = 0; i < rows * tile_row_bytes / format.bytes; ++i) {
        const auto of_chunk = static_cast<unsigned>(chunk - i % chunk);  // objects that follow, with this one
        left = of_chunk == chunk ? nonzero : left;
        const bool zero = engine() % of_chunk >= left;
        left -= zero ? 0U : 1U;
        unsigned object = static_cast<unsigned>(engine()) & 0xFFU & ~mask;
        for (unsigned part = 0; part < (format.packed ? 2U : 1U); ++part) {
            const unsigned code = zero ? 0U : random_code(format, engine);
            operand.values.push_back(value_of(format, code));
            object |= code << (format.shift + 4 * part);
        }
        for (unsigned byte = 0; byte < format.bytes; ++byte) {
            operand.bytes.push_back(static_cast<std::uint8_t>(object >> (8 * byte)));
        }
    }
    return operand;
}

struct Scales {
    std::vector<std::uint8_t> codes{};
    std::vector<double> values{};
    std::size_t per_row = 0;
};

inline Scales random_scales(ScaleType type, std::size_t rows, std::size_t per_row, std::mt19937_64& engine)
{
    Scales scales{.per_row = per_row};
    for (std::size_t i = 0; i < rows * per_row; ++i) {
        const auto power = static_cast<int>(engine() % 3) - 1;
        const auto eighths = type == ScaleType::ue8m0 ? 0U : static_cast<unsigned>(engine() % 8);
        scales.values.push_back(std::ldexp(1.0 + eighths / 8.0, power));
        scales.codes.push_back(static_cast<std::uint8_t>(
            type == ScaleType::ue8m0 ? 127 + power : (7 + power) << 3 | static_cast<int>(eighths)));
    }
    return scales;
}

/// Multiplies the values by their factors.
inline void apply(Operand& operand, const Scales& scales)
{
    const std::size_t block = operand.k / scales.per_row;  // elements that share a factor
    for (std::size_t i = 0; i < operand.values.size(); ++i) {
        operand.values[i] *= scales.values[i / operand.k * scales.per_row + i % operand.k / block];
    }
}

/// What D has before the products are added: (tile_m, tile_n).
template <class D>
std::vector<D> start_values()
{
    std::vector<D> start;
    for (unsigned i = 0; i < tile_m * tile_n; ++i) {
        start.push_back(D(static_cast<float>(i % 7) - 3.0F));
    }
    return start;
}

/// Returns how many of the sums are not the exact ones, which are few enough bits for D.
template <class D>
std::size_t wrong_sums(const std::vector<D>& found, const Operand& a, const Operand& b)
{
    const std::vector<D> start = start_values<D>();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        double sum = static_cast<double>(static_cast<float>(start[i]));
        for (std::size_t k = 0; k < a.k; ++k) {
            sum += a.values[i / tile_n * a.k + k] * b.values[i % tile_n * b.k + k];
        }
        wrong += static_cast<double>(static_cast<float>(found[i])) == sum ? 0U : 1U;
    }
    return wrong;
}

}  // namespace tessera::test
