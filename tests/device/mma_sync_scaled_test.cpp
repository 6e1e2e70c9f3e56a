/// The mma.sync forms of compute capability 12.x in the device layer: every pair of types, every kind of scale factors and every
/// place of them, compared with exact products in f64.

#include <doctest/doctest.h>

#include <random>
#include <type_traits>

#include "device_fixture.hpp"
#include "mma_sync_operands.hpp"
#include "mma_sync_scaled_kernels.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

/// Of 8-bit floats only those whose products have few enough bits to be added exactly.
unsigned random_code(const Format& format, std::mt19937_64& engine)
{
    const unsigned sign = engine() % 2 == 0 ? 0U : 1U << (format.significand_bits + format.exponent_bits);
    if (format.exponent_bits < 4) {
        return sign | static_cast<unsigned>(engine() % (1U << (format.exponent_bits + format.significand_bits)));
    }
    const auto exponent = static_cast<unsigned>(format.bias - 1) + static_cast<unsigned>(engine() % 3);
    return sign | exponent << format.significand_bits |
           static_cast<unsigned>(engine() % (1U << format.significand_bits));
}

Operand random_rows(const Format& format, std::size_t rows, std::mt19937_64& engine)
{
    return random_operand(format, rows, 1, 1, engine, random_code);
}

template <class D>
std::size_t wrong_products(const Format& format_a, const Format& format_b, std::mt19937_64& engine)
{
    const Stream stream;
    Operand a = random_rows(format_a, tile_m, engine);
    const Operand b = random_rows(format_b, tile_n, engine);
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
    const Scales a_scales = random_scales(type, tile_m, narrow_steps * factors, engine);
    const Scales b_scales = random_scales(type, tile_n, narrow_steps * factors, engine);
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
    for (const Format& a : byte_formats) {
        for (const Format& b : byte_formats) {
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
    for (const Format& a : byte_formats) {
        for (const Format& b : byte_formats) {
            CAPTURE(a.name);
            CAPTURE(b.name);
            CHECK(wrong_scaled_products(narrow_scaled_product_kernel(a.type, b.type), random_rows(a, tile_m, engine),
                                        random_rows(b, tile_n, engine), ScaleType::ue8m0, 1, engine) == 0);
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
            CHECK(wrong_scaled_products(
                      packed_scaled_product_kernel(type, place), random_rows(pair_format, tile_m, engine),
                      random_rows(pair_format, tile_n, engine), type, type == ScaleType::ue8m0 ? 2 : 4, engine) == 0);
        }
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
