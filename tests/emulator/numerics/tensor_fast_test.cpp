// The fast path, the integer, bit and f64 kinds, and the decoding of tiles.

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "../hardware/probe_inputs.hpp"
#include "numerics/dispatch.hpp"
#include "numerics/tensor_sum.hpp"

namespace {

using namespace tessera::emulator::numerics;
namespace probe = tessera::probe;

template <typename Body>
void with_each_width(Body body)
{
    const detail::VectorUnit widest = detail::vector_unit();
    for (const auto unit : {detail::VectorUnit::portable, detail::VectorUnit::avx2, detail::VectorUnit::avx512}) {
        if (unit <= widest) {
            detail::vector_unit() = unit;
            body();
        }
    }
    detail::vector_unit() = widest;
}

std::vector<float> numbers(probe::Generator& random, std::size_t count, int spread)
{
    std::vector<float> values(count);
    for (float& value : values) {
        value =
            std::bit_cast<float>(static_cast<std::uint32_t>(probe::detail::number(random, probe::bits_f32, 0, spread)));
    }
    return values;
}

}  // namespace

TEST_CASE("the fast path is within its bound for every shape")
{
    with_each_width([] {
        probe::Generator random(41);
        for (int round = 0; round < 60; ++round) {
            const std::size_t m = 1 + random.below(20);
            const std::size_t n = 1 + random.below(90);
            const std::size_t k = 1 + random.below(40);
            const std::size_t lda = k + random.below(3);
            const std::size_t ldb = n + random.below(3);
            const std::size_t ldd = n + 1 + random.below(3);
            const bool accumulate = random.one_in(2);
            const std::vector<float> a = numbers(random, m * lda, 6);
            const std::vector<float> b = numbers(random, k * ldb, 6);
            std::vector<float> d = numbers(random, m * ldd, 6);
            const std::vector<float> before = d;
            multiply_fast(m, n, k, a.data(), lda, b.data(), ldb, d.data(), ldd, accumulate);
            int wrong = 0;
            for (std::size_t row = 0; row < m; ++row) {
                for (std::size_t column = 0; column < ldd; ++column) {
                    const std::size_t at = row * ldd + column;
                    if (column >= n) {
                        wrong += d[at] != before[at];
                        continue;
                    }
                    long double exact = accumulate ? before[at] : 0.0F;
                    long double magnitude = std::fabs(exact);
                    for (std::size_t i = 0; i < k; ++i) {
                        const long double product = static_cast<long double>(a[row * lda + i]) * b[i * ldb + column];
                        exact += product;
                        magnitude += std::fabs(product);
                    }
                    // Without FMA each product is rounded too.
                    const int roundings = detail::vector_unit() == detail::VectorUnit::portable ? 2 : 1;
                    const auto bound = static_cast<long double>(k + 1) * 0x1p-24L * roundings * magnitude;
                    wrong += std::fabs(d[at] - exact) <= bound ? 0 : 1;
                }
            }
            INFO("m ", m, " n ", n, " k ", k);
            CHECK(wrong == 0);
        }
    });
}

TEST_CASE("both paths agree bit for bit on small integers")
{
    with_each_width([] {
        probe::Generator random(42);
        const std::size_t m = 17;
        const std::size_t n = 45;
        const std::size_t k = 16;
        std::vector<std::uint16_t> a(m * k);
        std::vector<std::uint16_t> b(n * k);
        for (auto* codes : {&a, &b}) {
            for (std::uint16_t& code : *codes) {
                code = f16_from_float(static_cast<float>(random.below(33)) - 16.0F);
            }
        }
        const CodeView a_view{Format::f16, a.data(), static_cast<std::ptrdiff_t>(k), 1, true};
        const CodeView b_view{Format::f16, b.data(), static_cast<std::ptrdiff_t>(k), 1, false};
        std::vector<float> exact(m * n, 3.0F);
        std::vector<float> fast(m * n, 3.0F);
        multiply_exact(sum_model(TensorUnit::blackwell, Format::f16, Accumulator::f32, k), ExactA(a_view, m, k),
                       ExactB(b_view, n, k), exact.data(), n);
        std::vector<float> a_values(m * k);
        std::vector<float> b_values(k * n);
        decode_tile(a_view, m, k, a_values.data(), k, 1);
        decode_tile(b_view, n, k, b_values.data(), 1, n);
        multiply_fast(m, n, k, a_values.data(), k, b_values.data(), n, fast.data(), n);
        CHECK(exact == fast);
    });
}

TEST_CASE("tiles decode from either major order, with negation and scales")
{
    const std::vector<std::uint8_t> codes = {0x38, 0x40, 0xB8, 0x7E, 0x00, 0x01};  // e4m3: 1 2 -1 448 0 2^-9
    std::vector<float> values(6);
    decode_tile({Format::e4m3, codes.data(), 3, 1, false}, 2, 3, values.data(), 3, 1);
    CHECK(values == std::vector<float>{1, 2, -1, 448, 0, 0x1p-9F});
    decode_tile({Format::e4m3, codes.data(), 1, 2, true}, 2, 3, values.data(), 1, 2);
    CHECK(values == std::vector<float>{-1, -2, 1, -448, 0, -0x1p-9F});
    const std::vector<std::uint8_t> scales = {128, 126, 127, 129};
    std::vector<float> block(8, 1.0F);
    scale_tile(block.data(), 2, 4, 4, 1, Format::ue8m0, scales.data(), 2);
    CHECK(block == std::vector<float>{2, 2, 0.5F, 0.5F, 1, 1, 4, 4});
    const std::vector<std::uint32_t> words = {0x3F80'1FFF, 0xC000'0001};
    decode_tile({Format::tf32, words.data(), 2, 1, false}, 1, 2, values.data(), 2, 1);
    CHECK(values[0] == 1.0F);
    CHECK(values[1] == -2.0F);
}

TEST_CASE("rounding a tile to f16, and scaling an accumulator")
{
    probe::Generator random(43);
    std::vector<float> values(40000);
    for (float& value : values) {
        value = std::bit_cast<float>(static_cast<std::uint32_t>(
            random.one_in(2) ? random.next() : probe::detail::number(random, probe::bits_f32, -8, 20)));
    }
    std::vector<float> rounded = values;
    round_tile_to_f16(100, 400, rounded.data(), 400);
    int wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float expected = float_from_f16(f16_from_float(values[i]));
        wrong += std::bit_cast<std::uint32_t>(expected) != std::bit_cast<std::uint32_t>(rounded[i]);
    }
    CHECK(wrong == 0);
    std::vector<float> d = {8.0F, 3.0F, -1.0F};
    scale_accumulator(1, 2, d.data(), 3, 15);
    CHECK(d == std::vector<float>{0x1p-12F, 3 * 0x1p-15F, -1.0F});
}

TEST_CASE("integers wrap or clamp once")
{
    with_each_width([] {
        probe::Generator random(44);
        for (const bool saturate : {false, true}) {
            const std::size_t m = 5;
            const std::size_t n = 77;
            const std::size_t k = 32;
            std::vector<std::int16_t> a(m * k);
            std::vector<std::int16_t> b(k * n);
            std::vector<std::int32_t> d(m * n);
            for (auto* values : {&a, &b}) {
                for (std::int16_t& value : *values) {
                    value = static_cast<std::int16_t>(static_cast<int>(random.below(384)) - 128);
                }
            }
            for (std::int32_t& value : d) {
                value = static_cast<std::int32_t>(random.one_in(2) ? 0x7FFF'0000U + random.below(65536)
                                                                   : 0x8000'0000U + random.below(65536));
            }
            const std::vector<std::int32_t> before = d;
            multiply_integer(m, n, k, a.data(), b.data(), d.data(), n, true, saturate);
            int wrong = 0;
            int clamped = 0;
            for (std::size_t i = 0; i < d.size(); ++i) {
                std::int64_t sum = before[i];
                for (std::size_t j = 0; j < k; ++j) {
                    sum += std::int64_t{a[i / n * k + j]} * b[j * n + i % n];
                }
                const std::int64_t limited =
                    std::min<std::int64_t>(std::max<std::int64_t>(sum, std::numeric_limits<std::int32_t>::min()),
                                           std::numeric_limits<std::int32_t>::max());
                clamped += limited != sum;
                wrong += d[i] != static_cast<std::int32_t>(saturate ? limited : sum);
            }
            CHECK(wrong == 0);
            CHECK(clamped > 10);
            multiply_integer(m, n, k, a.data(), b.data(), d.data(), n, false, saturate);
            CHECK(d[n + 1] != before[n + 1]);
        }
    });
}

TEST_CASE("single bits and f64")
{
    const std::vector<std::uint32_t> a = {0xFFFF'FFFF, 0x0F0F'0F0F};
    const std::vector<std::uint32_t> b = {0x1, 0xFFFF'0000, 0x0, 0x0};
    std::vector<std::int32_t> d = {10, 20};
    multiply_bits(1, 2, 2, a.data(), b.data(), BitOperation::bit_and, d.data(), 2);
    CHECK(d == std::vector<std::int32_t>{10 + 1 + 8, 20});
    multiply_bits(1, 2, 2, a.data(), b.data(), BitOperation::bit_xor, d.data(), 2, false);
    CHECK(d == std::vector<std::int32_t>{31 + 16, 32 + 16});
    // The order of the chain is visible: (1 * 1 + 2^60) - 2^60 loses the 1.
    const std::vector<double> x = {1.0, 0x1p60, -0x1p60};
    const std::vector<double> y = {1.0, 1.0, 1.0};
    std::vector<double> sum = {0.0};
    multiply_f64(1, 1, 3, x.data(), y.data(), sum.data(), 1);
    CHECK(sum[0] == 0.0);
    const std::vector<double> z = {0x1p60, -0x1p60, 1.0};
    multiply_f64(1, 1, 3, z.data(), y.data(), sum.data(), 1);
    CHECK(sum[0] == 1.0);
}
