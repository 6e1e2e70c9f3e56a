/// mma.sp of the device layer: every type, K, selector, sum and kind of scale factors, with random places of A's nonzero elements,
/// compared with exact products in f64, on whatever device there is: what it does not have is left out.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "device_fixture.hpp"
#include "mma_sync_sparse_kernels.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

/// A format, and where its code is in an object.
struct Format {
    const char* name;
    OperandType type;
    int exponent_bits, significand_bits, bias;
    unsigned bytes, shift;
    bool packed = false;  ///< two in an object
};
constexpr Format f16_format{"f16", OperandType::f16, 5, 10, 15, 2, 0};
constexpr Format bf16_format{"bf16", OperandType::bf16, 8, 7, 127, 2, 0};
constexpr Format tf32_format{"tf32", OperandType::tf32, 8, 10, 127, 4, 13};
constexpr Format pair_format{"e2m1 pairs", OperandType::e2m1, 2, 1, 1, 1, 0, true};
constexpr std::array<Format, 5> byte_formats{{{"e4m3", OperandType::e4m3, 4, 3, 7, 1, 0},
                                              {"e5m2", OperandType::e5m2, 5, 2, 15, 1, 0},
                                              {"e2m3", OperandType::e2m3, 2, 3, 1, 1, 0},
                                              {"e3m2", OperandType::e3m2, 3, 2, 3, 1, 0},
                                              {"e2m1", OperandType::e2m1, 2, 1, 1, 1, 2}}};

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

/// A code with few bits, so that sums are exact: at most two behind the first one, none for sums in f16. One of eight is
/// zero.
unsigned random_code(const Format& format, bool coarse, std::mt19937_64& engine)
{
    if (engine() % 8 == 0) {
        return 0;
    }
    const unsigned sign = static_cast<unsigned>(engine() % 2) << (format.significand_bits + format.exponent_bits);
    const auto exponent = static_cast<unsigned>(format.bias - 1) + static_cast<unsigned>(engine() % 3);
    const int bits = coarse ? 0 : std::min(format.significand_bits, 2);
    const auto fraction = static_cast<unsigned>(engine() % (1U << bits)) << (format.significand_bits - bits);
    return sign | exponent << format.significand_bits | fraction;
}

/// Rows of sparse_row_bytes bytes, and the values in them.
struct Operand {
    std::vector<std::uint8_t> bytes{};
    std::vector<double> values{};
    std::size_t k = 0;  ///< values of a row
};

/// What surrounds elements of fewer than 8 bits is random. `nonzero` are the objects of each `chunk` that may be other than
/// zero, at random places.
Operand random_operand(const Format& format, std::size_t rows, unsigned chunk, unsigned nonzero, bool coarse,
                       std::mt19937_64& engine)
{
    Operand operand{.k = std::size_t{sparse_row_bytes} / format.bytes * (format.packed ? 2 : 1)};
    const int bits = 1 + format.exponent_bits + format.significand_bits;
    const unsigned mask = format.bytes > 1 || format.packed ? ~0U : ((1U << bits) - 1U) << format.shift;
    unsigned left = 0;  // that this chunk may have
    for (std::size_t i = 0; i < rows * sparse_row_bytes / format.bytes; ++i) {
        const auto of_chunk = static_cast<unsigned>(chunk - i % chunk);  // objects that follow, with this one
        left = of_chunk == chunk ? nonzero : left;
        const bool zero = engine() % of_chunk >= left;
        left -= zero ? 0U : 1U;
        unsigned object = static_cast<unsigned>(engine()) & 0xFFU & ~mask;
        for (unsigned part = 0; part < (format.packed ? 2U : 1U); ++part) {
            const unsigned code = zero ? 0U : random_code(format, coarse, engine);
            operand.values.push_back(value_of(format, code));
            object |= code << (format.shift + 4 * part);
        }
        for (unsigned byte = 0; byte < format.bytes; ++byte) {
            operand.bytes.push_back(static_cast<std::uint8_t>(object >> (8 * byte)));
        }
    }
    return operand;
}

Operand random_sparse(const Format& format, bool coarse, std::mt19937_64& engine)
{
    const unsigned chunk = format.type == OperandType::tf32 ? 2 : 4;
    return random_operand(format, sparse_m, chunk, chunk / 2, coarse, engine);
}
Operand random_dense(const Format& format, bool coarse, std::mt19937_64& engine)
{
    return random_operand(format, sparse_n, 1, 1, coarse, engine);
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
    for (unsigned i = 0; i < sparse_m * sparse_n; ++i) {
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
            sum += a.values[i / sparse_n * a.k + k] * b.values[i % sparse_n * b.k + k];
        }
        wrong += static_cast<double>(static_cast<float>(found[i])) == sum ? 0U : 1U;
    }
    return wrong;
}

template <class D>
std::size_t wrong_products(SparseProduct<D> kernel, const Format& format_a, const Format& format_b,
                           std::mt19937_64& engine)
{
    const Stream stream;
    constexpr bool coarse = std::is_same_v<D, f16>;
    const Operand a = random_sparse(format_a, coarse, engine), b = random_dense(format_b, coarse, engine);
    const auto compressed = compress_bytes(format_a.type, format_a.packed, a.bytes);
    REQUIRE(compressed.has_value());
    const auto device_a = DeviceBuffer<std::uint8_t>::from_host(stream, compressed->stored);
    const auto metadata = DeviceBuffer<std::uint32_t>::from_host(stream, compressed->metadata);
    const auto device_b = DeviceBuffer<std::uint8_t>::from_host(stream, b.bytes);
    auto d = DeviceBuffer<D>::from_host(stream, start_values<D>());
    launch(kernel, LaunchConfig(stream, {1}, {32}), device_a.span(), metadata.span(), device_b.span(), d.span());
    return wrong_sums(d.to_vector(), a, b);
}

/// @param factors  of a row in one instruction; there are two instructions
std::size_t wrong_scaled_products(SparseScaledProduct kernel, const Format& format_a, const Format& format_b,
                                  ScaleType type, std::size_t factors, std::mt19937_64& engine)
{
    const Stream stream;
    Operand a = random_sparse(format_a, false, engine), b = random_dense(format_b, false, engine);
    const auto compressed = compress_bytes(format_a.type, format_a.packed, a.bytes);
    REQUIRE(compressed.has_value());
    const Scales a_scales = random_scales(type, sparse_m, 2 * factors, engine);
    const Scales b_scales = random_scales(type, sparse_n, 2 * factors, engine);
    const auto device_a = DeviceBuffer<std::uint8_t>::from_host(stream, compressed->stored);
    const auto metadata = DeviceBuffer<std::uint32_t>::from_host(stream, compressed->metadata);
    const auto device_b = DeviceBuffer<std::uint8_t>::from_host(stream, b.bytes);
    const auto device_a_scales = DeviceBuffer<std::uint8_t>::from_host(stream, a_scales.codes);
    const auto device_b_scales = DeviceBuffer<std::uint8_t>::from_host(stream, b_scales.codes);
    auto d = DeviceBuffer<float>::from_host(stream, start_values<float>());
    launch(kernel, LaunchConfig(stream, {1}, {32}), device_a.span(), metadata.span(), device_b.span(),
           device_a_scales.span(), device_b_scales.span(), d.span());
    apply(a, a_scales);
    apply(b, b_scales);
    return wrong_sums(d.to_vector(), a, b);
}

bool device_has(int capability)
{
    const DeviceProperties& device = Device::current().properties();
    const int found = 10 * device.compute_capability_major + device.compute_capability_minor;
    if (capability == 120 ? device.compute_capability_major != 12 : found < capability) {
        MESSAGE("skipped: the device does not have compute capability ", capability / 10, ".", capability % 10);
        return false;
    }
    return true;
}

}  // namespace

TEST_CASE("f16, bf16 and tf32, with every selector, and sums in f16 of f16")
{
    if (!device_has(80)) {
        return;
    }
    std::mt19937_64 engine = random_engine(31);
    for (const Format& format : {f16_format, bf16_format, tf32_format}) {
        for (const bool wide : {false, true}) {
            CAPTURE(format.name);
            CAPTURE(wide);
            CHECK(wrong_products<float>(sparse_product_kernel<float>(format.type, wide), format, format, engine) == 0);
        }
    }
    for (const bool wide : {false, true}) {
        CAPTURE(wide);
        CHECK(wrong_products<f16>(sparse_product_kernel<f16>(OperandType::f16, wide), f16_format, f16_format, engine) ==
              0);
    }
}

TEST_CASE("8-bit floats, mixed")
{
    if (!device_has(89)) {
        return;
    }
    std::mt19937_64 engine = random_engine(32);
    for (const Format& a : {byte_formats[0], byte_formats[1]}) {
        for (const Format& b : {byte_formats[0], byte_formats[1]}) {
            CAPTURE(a.name);
            CAPTURE(b.name);
            CHECK(wrong_products<float>(sparse_bytes_kernel<float>(a.type, b.type), a, b, engine) == 0);
        }
    }
}

TEST_CASE("floats of 8, 6 and 4 bits, mixed, with sums in f32 and f16")
{
    if (!device_has(120)) {
        return;
    }
    std::mt19937_64 engine = random_engine(33);
    for (const Format& a : byte_formats) {
        for (const Format& b : byte_formats) {
            CAPTURE(a.name);
            CAPTURE(b.name);
            CHECK(wrong_products<float>(sparse_bytes_kernel<float>(a.type, b.type), a, b, engine) == 0);
            CHECK(wrong_products<f16>(sparse_bytes_kernel<f16>(a.type, b.type), a, b, engine) == 0);
        }
    }
}

TEST_CASE("floats of 8, 6 and 4 bits, mixed, with a scale factor for each row")
{
    if (!device_has(120)) {
        return;
    }
    std::mt19937_64 engine = random_engine(34);
    for (const Format& a : byte_formats) {
        for (const Format& b : byte_formats) {
            CAPTURE(a.name);
            CAPTURE(b.name);
            CHECK(wrong_scaled_products(sparse_scaled_bytes_kernel(a.type, b.type), a, b, ScaleType::ue8m0, 1,
                                        engine) == 0);
        }
    }
}

TEST_CASE("pairs of 4-bit floats with two ue8m0 or four ue4m3 factors, in every place")
{
    if (!device_has(120)) {
        return;
    }
    std::mt19937_64 engine = random_engine(35);
    for (const ScaleType type : {ScaleType::ue8m0, ScaleType::ue4m3}) {
        for (const unsigned place : {0U, 1U, 2U, 3U}) {
            CAPTURE(static_cast<int>(type));
            CAPTURE(place);
            CHECK(wrong_scaled_products(sparse_pairs_kernel(type, place), pair_format, pair_format, type,
                                        type == ScaleType::ue8m0 ? 2 : 4, engine) == 0);
        }
    }
}

TEST_CASE("metadata made on the device is that of the compressed matrix")
{
    if (!device_has(80)) {
        return;
    }
    for (const Format& format : {f16_format, tf32_format, byte_formats[0]}) {
        CAPTURE(format.name);
        const bool one_of_two = format.type == OperandType::tf32;
        const unsigned row_objects = sparse_row_bytes / format.bytes;
        const unsigned chunk = one_of_two ? 2 : 4;
        std::vector<std::uint8_t> bytes(std::size_t{sparse_m} * sparse_row_bytes);
        for (unsigned row = 0; row < sparse_m; ++row) {
            for (unsigned i = 0; i < row_objects / 2; ++i) {
                const unsigned place = pattern_place(row % 16, i) % chunk;
                const std::size_t object =
                    std::size_t{row} * row_objects + std::size_t{i} / (chunk / 2) * chunk + place;
                bytes[(object + 1) * format.bytes - 1] = 0x38;  // the upper byte: some number but zero
            }
        }
        const auto compressed = compress_bytes(format.type, format.packed, bytes);
        REQUIRE(compressed.has_value());
        const Stream stream;
        auto words = DeviceBuffer<std::uint32_t>::from_host(stream, std::vector<std::uint32_t>(32));
        launch(metadata_kernel(format.type), LaunchConfig(stream, {1}, {32}), words.span());
        const std::vector<std::uint32_t> found = words.to_vector();
        CHECK(std::equal(found.begin(), found.end(), compressed->metadata.begin()));
    }
}

TEST_CASE("a matrix with three nonzero elements in a chunk, or other extents, is not compressed")
{
    std::vector<std::uint8_t> bytes(std::size_t{16} * sparse_row_bytes);
    bytes[4] = bytes[6] = 0x38;
    const auto compressed = compress_bytes(OperandType::e4m3, false, bytes);
    REQUIRE(compressed.has_value());
    CHECK(compressed->stored[2] == 0x38);
    CHECK(compressed->stored[3] == 0x38);
    CHECK(compressed->metadata[0] == 0x4444'4484);  // (0, 1) but in the second chunk: (0, 2)
    bytes[7] = 0x38;
    CHECK_FALSE(compress_bytes(OperandType::e4m3, false, bytes).has_value());
    CHECK_FALSE(compress_bytes(OperandType::e4m3, false, std::vector<std::uint8_t>(std::size_t{8} * sparse_row_bytes))
                    .has_value());
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
