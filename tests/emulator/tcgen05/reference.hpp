#pragma once

// The reference of the tcgen05 tests, written from the definitions and independent of the emulator: the place of an
// operand's element in shared memory (PTX ISA "Shared Memory Layout and Swizzling"), the value of a code of a narrow
// format, and a product in double.

#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::emulator::test {

/// Pseudo-random numbers, the same in every run.
class Random {
public:
    explicit Random(unsigned seed) : engine_(seed) {}
    std::uint32_t operator()() { return static_cast<std::uint32_t>(engine_()); }

private:
    std::mt19937 engine_;
};

enum class Layout { none, swizzle_32, swizzle_64, swizzle_128, swizzle_128_atom_32 };

struct MemoryLayout {
    Layout layout = Layout::none;
    bool mn_major = false;
    std::size_t leading = 0, stride = 0;  ///< bytes

    /// Byte offset of element (mn, k) of `size` bytes, in an image at an aligned address.
    [[nodiscard]] std::size_t offset(std::size_t mn, std::size_t k, std::size_t size) const
    {
        std::size_t linear = 0;
        const std::size_t widths[] = {16, 32, 64, 128, 128};
        const std::size_t width = widths[static_cast<int>(layout)];
        if (!mn_major) {
            const std::size_t kb = k * size;
            linear = layout == Layout::none ? mn / 8 * stride + mn % 8 * 16 + kb / 16 * leading + kb % 16
                                            : mn / 8 * stride + mn % 8 * width + kb;
        } else {
            const std::size_t mb = mn * size;
            switch (layout) {
                case Layout::none: linear = mb / 16 * stride + mb % 16 + k / 8 * leading + k % 8 * 16; break;
                case Layout::swizzle_128_atom_32:
                    linear = mb / 128 * leading + mb % 128 + k / 4 * stride + k % 4 * 128;
                    break;
                default: linear = mb / width * leading + mb % width + k / 8 * stride + k % 8 * width; break;
            }
        }
        switch (layout) {
            case Layout::none: return linear;
            case Layout::swizzle_32: return linear ^ (linear >> 7 & 1) << 4;
            case Layout::swizzle_64: return linear ^ (linear >> 7 & 3) << 4;
            case Layout::swizzle_128: return linear ^ (linear >> 7 & 7) << 4;
            case Layout::swizzle_128_atom_32: return linear ^ (linear >> 7 & 3) << 5;
        }
        return linear;
    }
    /// The tcgen05 descriptor without its start address.
    [[nodiscard]] std::uint64_t descriptor() const
    {
        const std::uint64_t codes[] = {0, 6, 4, 2, 1};
        return codes[static_cast<int>(layout)] << 61 | std::uint64_t{1} << 46 | std::uint64_t{stride >> 4} << 32 |
               std::uint64_t{leading >> 4} << 16;
    }
};

/// A number format: sign, exponent, mantissa; no infinities or NaN among the codes that the tests use.
struct NumberFormat {
    std::string name;
    unsigned exponent_bits, mantissa_bits;
    int bias;
    unsigned bits;             ///< in memory
    unsigned code_f8f6f4 = 0;  ///< in the instruction descriptor

    [[nodiscard]] double value(std::uint32_t code) const
    {
        const std::uint32_t mantissa = code & ((1u << mantissa_bits) - 1);
        const int exponent = static_cast<int>(code >> mantissa_bits & ((1u << exponent_bits) - 1));
        const double sign = (code >> (mantissa_bits + exponent_bits) & 1) != 0 ? -1 : 1;
        const double scale = std::ldexp(1.0, -static_cast<int>(mantissa_bits));
        return exponent == 0 ? sign * std::ldexp(mantissa * scale, 1 - bias)
                             : sign * std::ldexp(1 + mantissa * scale, exponent - bias);
    }
    /// A code with a value between about 1/4 and 4, or zero, and at most 3 significant bits: sums of products of these
    /// are exact.
    [[nodiscard]] std::uint32_t sample(Random& random) const
    {
        if (random() % 8 == 0) {
            return 0;
        }
        const auto exponent = static_cast<std::uint32_t>(bias) + random() % 2;
        const unsigned kept = std::min(mantissa_bits, 2u);
        const std::uint32_t mantissa = (random() % (1u << kept)) << (mantissa_bits - kept);
        return (random() % 2 << (exponent_bits + mantissa_bits)) | exponent << mantissa_bits | mantissa;
    }
};
inline const NumberFormat f16{"f16", 5, 10, 15, 16}, bf16{"bf16", 8, 7, 127, 16}, tf32{"tf32", 8, 23, 127, 32},
    e4m3{"e4m3", 4, 3, 7, 8, 0}, e5m2{"e5m2", 5, 2, 15, 8, 1}, e2m3{"e2m3", 2, 3, 1, 6, 3}, e3m2{"e3m2", 3, 2, 3, 6, 4},
    e2m1{"e2m1", 2, 1, 1, 4, 5};

/// Codes of a matrix, [mn][k].
struct Matrix {
    std::size_t mn = 0, k = 0;
    std::vector<std::uint32_t> codes;
    [[nodiscard]] std::uint32_t at(std::size_t row, std::size_t depth) const { return codes[row * k + depth]; }
    std::uint32_t& at(std::size_t row, std::size_t depth) { return codes[row * k + depth]; }
};
template <typename Sample>
Matrix make_matrix(std::size_t mn, std::size_t k, Sample&& sample)
{
    Matrix matrix{mn, k, std::vector<std::uint32_t>(mn * k)};
    for (auto& code : matrix.codes) {
        code = sample();
    }
    return matrix;
}

/// Stores rows first .. first + rows - 1 of a matrix of 8-, 16- or 32-bit elements in the layout of shared memory, from
/// `base` of the image on.
inline void store(std::vector<std::byte>& image, std::size_t base, const MemoryLayout& layout, const Matrix& matrix,
                  std::size_t size, std::size_t first, std::size_t rows)
{
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t depth = 0; depth < matrix.k; ++depth) {
            const std::size_t place = base + layout.offset(row, depth, size);
            if (place + size > image.size()) {
                image.resize(place + size);
            }
            for (std::size_t byte = 0; byte < size; ++byte) {
                image[place + byte] = static_cast<std::byte>(matrix.at(first + row, depth) >> (8 * byte));
            }
        }
    }
}

}  // namespace tessera::emulator::test
