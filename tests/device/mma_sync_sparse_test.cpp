/// mma.sp of the device layer: every type, K, selector, sum and kind of scale factors, with random places of A's nonzero elements,
/// compared with exact products in f64, on whatever device there is: what it does not have is left out.

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <type_traits>
#include <vector>

#include "device_fixture.hpp"
#include "mma_sync_operands.hpp"
#include "mma_sync_sparse_kernels.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr Format f16_format{"f16", OperandType::f16, 5, 10, 15, 2, 0};
constexpr Format bf16_format{"bf16", OperandType::bf16, 8, 7, 127, 2, 0};
constexpr Format tf32_format{"tf32", OperandType::tf32, 8, 10, 127, 4, 13};

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

Operand random_sparse(const Format& format, bool coarse, std::mt19937_64& engine)
{
    const unsigned chunk = format.type == OperandType::tf32 ? 2 : 4;
    return random_operand(format, tile_m, chunk, chunk / 2, engine,
                          [=](const Format& of, std::mt19937_64& by) { return random_code(of, coarse, by); });
}
Operand random_dense(const Format& format, bool coarse, std::mt19937_64& engine)
{
    return random_operand(format, tile_n, 1, 1, engine,
                          [=](const Format& of, std::mt19937_64& by) { return random_code(of, coarse, by); });
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
    const Scales a_scales = random_scales(type, tile_m, 2 * factors, engine);
    const Scales b_scales = random_scales(type, tile_n, 2 * factors, engine);
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
        const unsigned row_objects = tile_row_bytes / format.bytes;
        const unsigned chunk = one_of_two ? 2 : 4;
        std::vector<std::uint8_t> bytes(std::size_t{tile_m} * tile_row_bytes);
        for (unsigned row = 0; row < tile_m; ++row) {
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
    std::vector<std::uint8_t> bytes(std::size_t{16} * tile_row_bytes);
    bytes[4] = bytes[6] = 0x38;
    const auto compressed = compress_bytes(OperandType::e4m3, false, bytes);
    REQUIRE(compressed.has_value());
    CHECK(compressed->stored[2] == 0x38);
    CHECK(compressed->stored[3] == 0x38);
    CHECK(compressed->metadata[0] == 0x4444'4484);  // (0, 1) but in the second chunk: (0, 2)
    bytes[7] = 0x38;
    CHECK_FALSE(compress_bytes(OperandType::e4m3, false, bytes).has_value());
    CHECK_FALSE(compress_bytes(OperandType::e4m3, false, std::vector<std::uint8_t>(std::size_t{8} * tile_row_bytes))
                    .has_value());
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
