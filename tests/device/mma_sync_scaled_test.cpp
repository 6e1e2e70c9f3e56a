/// The mma.sync forms of compute capability 12.x in the device layer: every pair of types, every kind of scale factors and every
/// place of them, compared with exact products in f64.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

#include "device_fixture.hpp"
#include "mma_sync_scaled_kernels.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

/// A format of 4 to 8 bits, and where its code is in a byte.
struct Format {
    const char* name;
    OperandType type;
    int exponent_bits, significand_bits, bias;
    unsigned shift;
    unsigned largest;  ///< magnitude code that is used
};
// Of 8-bit floats only those whose products have few enough bits to be added exactly.
constexpr std::array<Format, 5> formats{{{"e4m3", OperandType::e4m3, 4, 3, 7, 0, 0},
                                         {"e5m2", OperandType::e5m2, 5, 2, 15, 0, 0},
                                         {"e2m3", OperandType::e2m3, 2, 3, 1, 0, 0x1F},
                                         {"e3m2", OperandType::e3m2, 3, 2, 3, 0, 0x1F},
                                         {"e2m1", OperandType::e2m1, 2, 1, 1, 2, 0x7}}};
constexpr Format packed = formats[4];

double value_of(const Format& format, unsigned code)
{
    const unsigned fraction = code & ((1U << format.significand_bits) - 1U);
    const auto exponent = static_cast<int>(code >> format.significand_bits & ((1U << format.exponent_bits) - 1U));
    const bool negative = (code >> (format.significand_bits + format.exponent_bits)) != 0;
    const double hidden = exponent == 0 ? 0.0 : std::ldexp(1.0, format.significand_bits);
    const double magnitude =
        std::ldexp(hidden + fraction, std::max(exponent, 1) - format.bias - format.significand_bits);
    return negative ? -magnitude : magnitude;
}

unsigned random_code(const Format& format, std::mt19937_64& engine)
{
    const unsigned sign = engine() % 2 == 0 ? 0U : 1U << (format.significand_bits + format.exponent_bits);
    if (format.largest != 0) {
        return sign | static_cast<unsigned>(engine() % (format.largest + 1));
    }
    const auto exponent = static_cast<unsigned>(format.bias - 1) + static_cast<unsigned>(engine() % 3);
    return sign | exponent << format.significand_bits |
           static_cast<unsigned>(engine() % (1U << format.significand_bits));
}

/// Rows of narrow_row_bytes bytes, and the values in them.
struct Operand {
    std::vector<std::uint8_t> bytes{};
    std::vector<double> values{};
    std::size_t k = 0;  ///< values of a row
};

/// Elements in bytes of their own. What surrounds them is random.
Operand random_bytes(const Format& format, std::size_t rows, std::mt19937_64& engine)
{
    Operand operand{.k = narrow_row_bytes};
    const int bits = 1 + format.exponent_bits + format.significand_bits;
    const unsigned mask = ((1U << bits) - 1U) << format.shift;
    for (std::size_t i = 0; i < rows * operand.k; ++i) {
        const unsigned code = random_code(format, engine);
        operand.values.push_back(value_of(format, code));
        operand.bytes.push_back(
            static_cast<std::uint8_t>(code << format.shift | (static_cast<unsigned>(engine()) & 0xFFU & ~mask)));
    }
    return operand;
}

Operand random_pairs(std::size_t rows, std::mt19937_64& engine)
{
    Operand operand{.k = std::size_t{2} * narrow_row_bytes};
    for (std::size_t i = 0; i < rows * narrow_row_bytes; ++i) {
        const unsigned low = random_code(packed, engine), high = random_code(packed, engine);
        operand.values.push_back(value_of(packed, low));
        operand.values.push_back(value_of(packed, high));
        operand.bytes.push_back(static_cast<std::uint8_t>(low | high << 4));
    }
    return operand;
}

struct Scales {
    std::vector<std::uint8_t> codes{};
    std::vector<double> values{};
    std::size_t per_row = 0;
};

Scales random_scales(ScaleType type, std::size_t rows, std::size_t per_row, std::mt19937_64& engine)
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

void apply(Operand& operand, const Scales& scales)
{
    const std::size_t block = operand.k / scales.per_row;  // elements that share a factor
    for (std::size_t i = 0; i < operand.values.size(); ++i) {
        operand.values[i] *= scales.values[i / operand.k * scales.per_row + i % operand.k / block];
    }
}

template <class D>
std::vector<D> start_values()
{
    std::vector<D> start;
    for (unsigned i = 0; i < narrow_m * narrow_n; ++i) {
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
            sum += a.values[i / narrow_n * a.k + k] * b.values[i % narrow_n * b.k + k];
        }
        wrong += static_cast<double>(static_cast<float>(found[i])) == sum ? 0U : 1U;
    }
    return wrong;
}

template <class D>
std::size_t wrong_products(const Format& format_a, const Format& format_b, std::mt19937_64& engine)
{
    const Stream stream;
    Operand a = random_bytes(format_a, narrow_m, engine);
    const Operand b = random_bytes(format_b, narrow_n, engine);
    if constexpr (std::is_same_v<D, f16>) {
        // One element of each row of A, at another place in each: the sums have few enough bits.
        for (std::size_t i = 0; i < a.values.size(); ++i) {
            if (i % a.k != (37 * (i / a.k) + 5) % a.k) {
                a.values[i] = 0;
                a.bytes[i] = 0;
            }
        }
    }
    const auto device_a = DeviceBuffer<std::uint8_t>::from_host(stream, a.bytes);
    const auto device_b = DeviceBuffer<std::uint8_t>::from_host(stream, b.bytes);
    auto d = DeviceBuffer<D>::from_host(stream, start_values<D>());
    launch(narrow_product_kernel<D>(format_a.type, format_b.type), LaunchConfig(stream, {1}, {32}), device_a.span(),
           device_b.span(), d.span());
    return wrong_sums(d.to_vector(), a, b);
}

std::size_t wrong_scaled_products(NarrowScaledProduct kernel, Operand a, Operand b, ScaleType type, std::size_t factors,
                                  std::mt19937_64& engine)
{
    const Stream stream;
    const Scales a_scales = random_scales(type, narrow_m, narrow_steps * factors, engine);
    const Scales b_scales = random_scales(type, narrow_n, narrow_steps * factors, engine);
    const auto device_a = DeviceBuffer<std::uint8_t>::from_host(stream, a.bytes);
    const auto device_b = DeviceBuffer<std::uint8_t>::from_host(stream, b.bytes);
    const auto device_a_scales = DeviceBuffer<std::uint8_t>::from_host(stream, a_scales.codes);
    const auto device_b_scales = DeviceBuffer<std::uint8_t>::from_host(stream, b_scales.codes);
    auto d = DeviceBuffer<float>::from_host(stream, start_values<float>());
    launch(kernel, LaunchConfig(stream, {1}, {32}), device_a.span(), device_b.span(), device_a_scales.span(),
           device_b_scales.span(), d.span());
    apply(a, a_scales);
    apply(b, b_scales);
    return wrong_sums(d.to_vector(), a, b);
}

bool has_the_forms()
{
    if (Device::current().properties().compute_capability_major != 12) {
        MESSAGE("skipped: the device does not have compute capability 12.x");
        return false;
    }
    return true;
}

}  // namespace

TEST_CASE("floats of 8, 6 and 4 bits, mixed, with sums in f32 and f16")
{
    if (!has_the_forms()) {
        return;
    }
    std::mt19937_64 engine = random_engine(24);
    for (const Format& a : formats) {
        for (const Format& b : formats) {
            CAPTURE(a.name);
            CAPTURE(b.name);
            CHECK(wrong_products<float>(a, b, engine) == 0);
            CHECK(wrong_products<f16>(a, b, engine) == 0);
        }
    }
}

TEST_CASE("floats of 8, 6 and 4 bits, mixed, with a scale factor for each row")
{
    if (!has_the_forms()) {
        return;
    }
    std::mt19937_64 engine = random_engine(25);
    for (const Format& a : formats) {
        for (const Format& b : formats) {
            CAPTURE(a.name);
            CAPTURE(b.name);
            CHECK(wrong_scaled_products(narrow_scaled_product_kernel(a.type, b.type), random_bytes(a, narrow_m, engine),
                                        random_bytes(b, narrow_n, engine), ScaleType::ue8m0, 1, engine) == 0);
        }
    }
}

TEST_CASE("pairs of 4-bit floats with two ue8m0 or four ue4m3 factors, in every place")
{
    if (!has_the_forms()) {
        return;
    }
    std::mt19937_64 engine = random_engine(26);
    for (const ScaleType type : {ScaleType::ue8m0, ScaleType::ue4m3}) {
        for (const unsigned place : {0U, 1U, 2U, 3U}) {
            CAPTURE(static_cast<int>(type));
            CAPTURE(place);
            CHECK(wrong_scaled_products(packed_scaled_product_kernel(type, place), random_pairs(narrow_m, engine),
                                        random_pairs(narrow_n, engine), type, type == ScaleType::ue8m0 ? 2 : 4,
                                        engine) == 0);
        }
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
