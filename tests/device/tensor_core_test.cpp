/// Features of the device layer beyond the library's own kernels: block-scaled products of every kind, A in tensor memory, and
/// pipelines of typed maps and tiles, for one CTA and for a pair, compared with exact products. Needs a device of compute capability 10, or the
/// emulated one.

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "device_fixture.hpp"
#include "support/test_main.hpp"
#include "tensor_core_kernels.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::size_t row_bytes = std::size_t{16} * row_chunks;

bool is_blackwell_here()
{
    const int major = Device::current().properties().compute_capability_major;
    const bool here = major == 10 || major == 11;
    if (!here) {
        MESSAGE("skipped: the device does not have compute capability 10 or 11");
    }
    return here;
}

/// A matrix with rows of 128 bytes, and the values of its elements.
struct Operand {
    std::vector<RowChunk> chunks;
    std::vector<double> values;  // (rows, k)
    std::size_t k = 0;
};

/// Makes random elements. `encode(engine)` returns the code and the value of one; `bits` is its size.
template <class Encode>
Operand random_operand(std::mt19937_64& engine, std::size_t rows, unsigned bits, Encode encode)
{
    Operand operand;
    operand.k = row_bytes * 8 / bits;
    operand.chunks.resize(rows * row_chunks);
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t k = 0; k < operand.k; ++k) {
            const auto [code, value] = encode(engine);
            operand.values.push_back(value);
            for (unsigned bit = 0; bit < bits; ++bit) {
                const std::size_t at = k * bits + bit;  // position in the row, lowest bit first
                auto& byte = operand.chunks[row * row_chunks + at / 128].bytes[at % 128 / 8];
                byte = static_cast<std::uint8_t>(byte | (code >> bit & 1U) << at % 8);
            }
        }
    }
    return operand;
}

std::pair<unsigned, double> random_e4m3(std::mt19937_64& engine)
{
    const auto value = static_cast<float>(static_cast<int>(engine() % 17) - 8);
    return {f8e4m3(value).bits, value};
}

/// Any value of the type.
std::pair<unsigned, double> random_e2m1(std::mt19937_64& engine)
{
    constexpr std::array<double, 8> magnitudes{0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const auto code = static_cast<unsigned>(engine() % 16);
    return {code, (code & 8U) != 0 ? -magnitudes[code & 7U] : magnitudes[code & 7U]};
}

std::pair<unsigned, double> random_f16(std::mt19937_64& engine)
{
    const auto value = static_cast<float>(static_cast<int>(engine() % 65) - 32) / 8.0F;
    return {f16(value).bits, value};
}

/// Scale factors: `per_row` codes per row, and their values. They are small enough for every sum to be exact in f32.
struct Scales {
    std::vector<std::uint8_t> codes;
    std::vector<double> values;
    std::size_t per_row;
};

Scales random_scales(std::mt19937_64& engine, std::size_t rows, std::size_t per_row, ScaleType type)
{
    Scales scales{{}, {}, per_row};
    for (std::size_t i = 0; i < rows * per_row; ++i) {
        const auto power = static_cast<int>(engine() % 3) - 1;
        if (type == ScaleType::ue8m0) {
            scales.codes.push_back(static_cast<std::uint8_t>(127 + power));  // a binary exponent, with this bias
            scales.values.push_back(std::ldexp(1.0, power));
        } else {
            const double value = std::ldexp(engine() % 2 == 0 ? 1.0 : 1.5, power);
            scales.codes.push_back(f8e4m3(static_cast<float>(value)).bits);
            scales.values.push_back(value);
        }
    }
    return scales;
}

/// Returns the exact product, row by row; unscaled if `a_scales` is empty.
std::vector<double> exact_product(const Operand& a, const Operand& b, const Scales& a_scales, const Scales& b_scales,
                                  std::size_t size)
{
    const auto scaled = [&](const Operand& operand, const Scales& scales) {
        std::vector<double> values = operand.values;
        for (std::size_t i = 0; i < values.size() && scales.per_row != 0; ++i) {
            const std::size_t block = operand.k / scales.per_row;  // elements that share a factor
            values[i] *= scales.values[i / operand.k * scales.per_row + i % operand.k / block];
        }
        return values;
    };
    const std::vector<double> left = scaled(a, a_scales);
    const std::vector<double> right = scaled(b, b_scales);
    std::vector<double> product(size * size);
    for (std::size_t row = 0; row < size; ++row) {
        for (std::size_t column = 0; column < size; ++column) {
            double sum = 0;
            for (std::size_t k = 0; k < a.k; ++k) {
                sum += left[row * a.k + k] * right[column * a.k + k];
            }
            product[row * size + column] = sum;
        }
    }
    return product;
}

std::size_t count_wrong(const std::vector<float>& found, const std::vector<double>& exact)
{
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        wrong += found[i] == exact[i] ? 0U : 1U;  // NaN, which d was filled with, is wrong
    }
    return wrong;
}

LaunchConfig launch_of(StreamRef stream, CtaGroup group)
{
    const unsigned ctas = group == CtaGroup::pair ? 2 : 1;
    LaunchConfig config(stream, {ctas}, {product_threads});
    config.cluster({ctas}).shared_memory_bytes(product_shared_bytes);
    return config;
}

}  // namespace

TEST_CASE("block-scaled products of every kind are exact, for one CTA and for a pair")
{
    if (!is_blackwell_here()) {
        return;
    }
    struct Form {
        MmaKind kind;
        ScaleVector vector;
        ScaleType type;
        const char* name;
    };
    const Stream stream;
    std::mt19937_64 engine = random_engine(11);
    for (const Form& form : {Form{MmaKind::mxf8f6f4, ScaleVector::x1, ScaleType::ue8m0, "mxf8f6f4 1X"},
                             Form{MmaKind::mxf4, ScaleVector::x2, ScaleType::ue8m0, "mxf4 2X"},
                             Form{MmaKind::mxf4nvf4, ScaleVector::x2, ScaleType::ue8m0, "mxf4nvf4 2X"},
                             Form{MmaKind::mxf4nvf4, ScaleVector::x4, ScaleType::ue4m3, "mxf4nvf4 4X"}}) {
        for (const CtaGroup group : {CtaGroup::one, CtaGroup::pair}) {
            const std::string name = std::string(form.name) + (group == CtaGroup::pair ? ", pair" : ", one CTA");
            CAPTURE(name);
            const std::size_t size = product_size(group);
            const auto operand = [&] {
                return form.kind == MmaKind::mxf8f6f4 ? random_operand(engine, size, 8, random_e4m3)
                                                      : random_operand(engine, size, 4, random_e2m1);
            };
            const Operand a = operand();
            const Operand b = operand();
            const std::size_t per_row = product_steps * static_cast<std::size_t>(form.vector);
            const Scales a_scales = random_scales(engine, size, per_row, form.type);
            const Scales b_scales = random_scales(engine, size, per_row, form.type);

            const auto device_a = DeviceBuffer<RowChunk>::from_host(stream, a.chunks);
            const auto device_b = DeviceBuffer<RowChunk>::from_host(stream, b.chunks);
            const auto device_a_scales = DeviceBuffer<std::uint8_t>::from_host(stream, a_scales.codes);
            const auto device_b_scales = DeviceBuffer<std::uint8_t>::from_host(stream, b_scales.codes);
            auto d = DeviceBuffer<float>::from_host(stream, std::vector<float>(size * size, NAN));
            launch(scaled_product_kernel(form.kind, form.vector, group), launch_of(stream, group), device_a.span(),
                   device_b.span(), device_a_scales.span(), device_b_scales.span(), d.span());
            CHECK(count_wrong(d.to_vector(), exact_product(a, b, a_scales, b_scales, size)) == 0);
        }
    }
}

TEST_CASE("A may be in tensor memory, for one CTA and for a pair")
{
    if (!is_blackwell_here()) {
        return;
    }
    const Stream stream;
    std::mt19937_64 engine = random_engine(12);
    for (const CtaGroup group : {CtaGroup::one, CtaGroup::pair}) {
        CAPTURE(static_cast<int>(group));
        const std::size_t size = product_size(group);
        const Operand a = random_operand(engine, size, 16, random_f16);
        const Operand b = random_operand(engine, size, 16, random_f16);
        const auto device_a = DeviceBuffer<RowChunk>::from_host(stream, a.chunks);
        const auto device_b = DeviceBuffer<RowChunk>::from_host(stream, b.chunks);
        auto d = DeviceBuffer<float>::from_host(stream, std::vector<float>(size * size, NAN));
        launch(tensor_memory_product_kernel(group), launch_of(stream, group), device_a.span(), device_b.span(),
               d.span());
        CHECK(count_wrong(d.to_vector(), exact_product(a, b, {{}, {}, 0}, {{}, {}, 0}, size)) == 0);
    }
}

TEST_CASE("typed maps, tiles and rings multiply in a CTA, in a pair, and in clusters that share B by multicast")
{
    if (!is_blackwell_here()) {
        return;
    }
    const Stream stream;
    std::mt19937_64 engine = random_engine(13);
    const auto random_matrix = [&](std::size_t rows) {
        std::vector<f16> matrix(rows * pipelined_k);
        for (f16& element : matrix) {
            element = f16(static_cast<float>(static_cast<int>(engine() % 9) - 4));
        }
        return matrix;
    };
    for (const auto& [group, ctas] : {std::pair{CtaGroup::one, 1U}, std::pair{CtaGroup::one, 2U},
                                      std::pair{CtaGroup::pair, 2U}, std::pair{CtaGroup::pair, 4U}}) {
        CAPTURE(ctas);
        const std::size_t m = std::size_t{128} * ctas;
        const auto a = random_matrix(m);
        const auto b = random_matrix(pipelined_n);
        std::vector<double> exact;
        for (std::size_t i = 0; i < m * pipelined_n; ++i) {
            double sum = 0;
            for (std::size_t k = 0; k < pipelined_k; ++k) {
                sum += double{float{a[i / pipelined_n * pipelined_k + k]}} *
                       double{float{b[i % pipelined_n * pipelined_k + k]}};
            }
            exact.push_back(sum);
        }
        const auto device_a = DeviceBuffer<f16>::from_host(stream, a);
        const auto device_b = DeviceBuffer<f16>::from_host(stream, b);
        auto d = DeviceBuffer<float>::from_host(stream, std::vector<float>(exact.size(), NAN));
        launch_pipelined_product(stream, group, ctas, device_a, device_b, d);
        CHECK(count_wrong(d.to_vector(), exact) == 0);
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
