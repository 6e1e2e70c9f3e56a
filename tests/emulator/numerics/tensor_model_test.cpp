// The exact path against the literal model, on every unit, format and vector width, and on awkward shapes.

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "numerics/dispatch.hpp"
#include "numerics/tensor_sum.hpp"
#include "slow_tensor_model.hpp"

namespace {

using namespace tessera::emulator::numerics;
namespace probe = tessera::probe;
namespace slow = tessera::slow;

struct Operand {
    Format format;
    probe::Bits bits;
    std::size_t cell_bytes;
};

const Operand f16{Format::f16, probe::bits_f16, 2};
const Operand bf16{Format::bf16, probe::bits_bf16, 2};
const Operand tf32{Format::tf32, probe::bits_tf32, 4};
const Operand e4m3{Format::e4m3, probe::bits_e4m3, 1};
const Operand e5m2{Format::e5m2, probe::bits_e5m2, 1};
const Operand e2m3{Format::e2m3, {3, 2, 1, false, 0, false}, 1};
const Operand e3m2{Format::e3m2, {2, 3, 3, false, 0, false}, 1};
const Operand e2m1{Format::e2m1, {1, 2, 1, false, 0, false}, 1};

/// Codes in memory order, and one by one.
struct Tile {
    std::vector<std::uint64_t> codes;  ///< [outer][k]
    std::vector<unsigned char> cells;

    Tile(const Operand& operand, std::size_t outer, std::size_t k, bool k_first, probe::Generator& random,
         int centre = 0)
        : codes(outer * k), cells(outer * k * operand.cell_bytes)
    {
        const int width = operand.bits.width() + operand.bits.pad;
        const bool any = centre == 0 && random.one_in(4);
        const bool few_special = centre != 0 && operand.bits.ieee && random.one_in(2);
        for (std::size_t i = 0; i < codes.size(); ++i) {
            const std::uint64_t draw = random.next() & ((std::uint64_t{1} << width) - 1);
            const std::uint64_t near = probe::detail::number(random, operand.bits, centre, 4);
            codes[i] = any || operand.bits.exponent < 4 ? draw : random.one_in(9) ? 0 : near;
            if (few_special && random.one_in(200)) {
                codes[i] = probe::element(random, probe::Kind::f32, probe::Class::special, false) >> (32 - width);
            }
            const std::size_t at = k_first ? i : i % k * outer + i / k;
            std::memcpy(&cells[at * operand.cell_bytes], &codes[i], operand.cell_bytes);
        }
    }
    [[nodiscard]] CodeView view(const Operand& operand, std::size_t outer, std::size_t k, bool k_first) const
    {
        return {operand.format, cells.data(), static_cast<std::ptrdiff_t>(k_first ? k : 1),
                static_cast<std::ptrdiff_t>(k_first ? 1 : outer), false};
    }
};

float draw_accumulator(probe::Generator& random, bool is_f16)
{
    const auto which = static_cast<probe::Class>(random.below(probe::class_count));
    const std::uint64_t code = probe::element(random, is_f16 ? probe::Kind::f16 : probe::Kind::f32, which, true);
    return is_f16 ? float_from_f16(static_cast<std::uint16_t>(code))
                  : std::bit_cast<float>(static_cast<std::uint32_t>(code));
}

std::uint32_t code_of(float value, bool is_f16)
{
    return is_f16 ? f16_from_float(value) : std::bit_cast<std::uint32_t>(value);
}

slow::Model slow_model(TensorUnit unit, const Operand& a, bool is_f16)
{
    const bool is_fp8 = a.format == Format::e4m3 || a.format == Format::e5m2;
    const bool cuts_fp8 = is_fp8 && (unit == TensorUnit::ada_mma || unit == TensorUnit::hopper_wgmma);
    slow::Model model;
    model.output = is_f16 ? slow::Output::f16 : cuts_fp8 ? slow::Output::f32_of_13_bits : slow::Output::f32;
    model.smallest_exponent = is_f16 ? -21 : -133;
    switch (unit) {
        case TensorUnit::volta_mma:
            model.fraction_bits = 23;
            model.smallest_exponent = is_f16 ? -19 : -131;
            model.terms_per_sum = 4;
            break;
        case TensorUnit::turing_mma:
            model.fraction_bits = 24;
            model.smallest_exponent = is_f16 ? -20 : -132;
            model.terms_per_sum = 8;
            break;
        case TensorUnit::ampere_mma:
        case TensorUnit::ada_mma:
            model.fraction_bits = 24;
            model.smallest_exponent = is_f16 ? -20 : -132;
            model.terms_per_sum = is_fp8 ? 16 : a.format == Format::tf32 ? 4 : 8;
            break;
        default: break;
    }
    if (cuts_fp8) {
        model.fraction_bits = 13;
    }
    return model;
}

/// `centre`: the exponents of A and of B lie around it, if it is not 0.
void compare(TensorUnit unit, const Operand& a, const Operand& b, bool is_f16, std::size_t m, std::size_t n,
             std::size_t k, probe::Generator& random, int scale_shift, bool accumulate, int centre = 0)
{
    const bool a_k_first = !random.one_in(2);
    const bool b_k_first = !random.one_in(2);
    const Tile a_tile(a, m, k, a_k_first, random, centre);
    const Tile b_tile(b, n, k, b_k_first, random, centre);
    const ExactA exact_a(a_tile.view(a, m, k, a_k_first), m, k);
    const ExactB exact_b(b_tile.view(b, n, k, b_k_first), n, k);
    const std::size_t ldd = n + 3;
    std::vector<float> d(m * ldd, 77.0F);
    for (std::size_t row = 0; row < m; ++row) {
        for (std::size_t column = 0; column < n; ++column) {
            d[row * ldd + column] = draw_accumulator(random, is_f16);
        }
    }
    const std::vector<float> before = d;
    const SumModel model = sum_model(unit, a.format, is_f16 ? Accumulator::f16 : Accumulator::f32, k);
    multiply_exact(model, exact_a, exact_b, d.data(), ldd, {accumulate, scale_shift});

    slow::Model reference = slow_model(unit, a, is_f16);
    reference.c_shift = scale_shift;
    int wrong = 0;
    for (std::size_t row = 0; row < m; ++row) {
        for (std::size_t column = 0; column < n; ++column) {
            const std::size_t at = row * ldd + column;
            const std::uint32_t c = accumulate ? code_of(before[at], is_f16) : 0U;
            const std::uint32_t expected =
                slow::dot(&a_tile.codes[row * k], &b_tile.codes[column * k], static_cast<int>(k), c, a.bits, b.bits,
                          is_f16 ? probe::bits_f16 : probe::bits_f32, reference);
            wrong += code_of(d[at], is_f16) != expected;
        }
        for (std::size_t column = n; column < ldd; ++column) {
            wrong += d[row * ldd + column] != 77.0F;
        }
    }
    INFO("unit ", static_cast<int>(unit), " A ", std::string(format_name(a.format)), " B ",
         std::string(format_name(b.format)), " m ", m, " n ", n, " k ", k, " f16 accumulator ", is_f16);
    CHECK(wrong == 0);
}

/// Runs `body` with every vector width of this processor.
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

}  // namespace

TEST_CASE("sums of every unit follow the literal model")
{
    with_each_width([] {
        probe::Generator random(31);
        for (int round = 0; round < 6; ++round) {
            const std::size_t n = 1 + random.below(70);
            const std::size_t m = 1 + random.below(9);
            for (const bool is_f16 : {false, true}) {
                compare(TensorUnit::volta_mma, f16, f16, is_f16, m, n, 8, random, 0, true);
                compare(TensorUnit::turing_mma, f16, f16, is_f16, m, n, 16, random, 0, true);
                compare(TensorUnit::ampere_mma, f16, f16, is_f16, m, n, 16, random, 0, true);
                compare(TensorUnit::ada_mma, e5m2, e4m3, is_f16, m, n, 32, random, 0, true);
                compare(TensorUnit::hopper_mma, f16, f16, is_f16, m, n, 16, random, 0, round != 0);
                compare(TensorUnit::hopper_wgmma, e4m3, e5m2, is_f16, m, n, 32, random, 0, round != 1);
                compare(TensorUnit::blackwell, f16, f16, is_f16, m, n, 16, random, round, true);
                compare(TensorUnit::blackwell, e4m3, e2m1, is_f16, m, n, 32, random, 0, true);
                compare(TensorUnit::blackwell, e2m3, e3m2, is_f16, m, n, 32, random, 0, true);
                compare(TensorUnit::blackwell, e5m2, e5m2, is_f16, m, n, 32, random, 0, true);
            }
            compare(TensorUnit::ampere_mma, bf16, bf16, false, m, n, 16, random, 0, true);
            compare(TensorUnit::ampere_mma, tf32, tf32, false, m, n, 8, random, 0, true);
            compare(TensorUnit::hopper_wgmma, bf16, bf16, false, m, n, 16, random, 0, true);
            compare(TensorUnit::hopper_wgmma, tf32, tf32, false, m, n, 8, random, 0, true);
            compare(TensorUnit::blackwell, bf16, bf16, false, m, n, 16, random, 15, true);
            compare(TensorUnit::blackwell, tf32, tf32, false, m, n, 8, random, 3, true);
        }
    });
}

TEST_CASE("sums near the ends of the range of f32 follow the literal model")
{
    // Some elements of a row are computed by float arithmetic, others by integers.
    with_each_width([] {
        probe::Generator random(33);
        for (const int centre : {-75, -66, -52, -48, -40, 30, 58, 62, 64, 70}) {
            for (int round = 0; round < 3; ++round) {
                const std::size_t n = 1 + random.below(100);
                compare(TensorUnit::hopper_wgmma, bf16, bf16, false, 5, n, 16, random, 0, round != 0, centre);
                compare(TensorUnit::hopper_mma, bf16, bf16, false, 5, 8, 16, random, 0, round != 0, centre);
                compare(TensorUnit::blackwell, tf32, tf32, false, 5, n, 8, random, round, true, centre);
                compare(TensorUnit::ampere_mma, bf16, bf16, false, 5, 8, 16, random, 0, true, centre);
            }
        }
        for (const int centre : {-14, -10, 7, 15}) {
            for (const bool is_f16 : {false, true}) {
                compare(TensorUnit::hopper_wgmma, f16, f16, is_f16, 5, 40, 16, random, 0, true, centre);
                compare(TensorUnit::hopper_wgmma, e5m2, e5m2, is_f16, 5, 40, 32, random, 0, true, centre);
                compare(TensorUnit::blackwell, e5m2, e5m2, is_f16, 5, 40, 32, random, 0, true, centre);
            }
        }
    });
}

TEST_CASE("the largest sums do not overflow the 32-bit partial sums")
{
    with_each_width([] {
        const std::vector<std::uint8_t> largest_e4m3(32 * 32, 0x77);  // 1.875 * 2^7
        const ExactA a({Format::e4m3, largest_e4m3.data(), 32, 1, true}, 1, 32);
        const ExactB b({Format::e4m3, largest_e4m3.data(), 32, 1, false}, 32, 32);
        std::vector<float> d(32, -1.0F);
        multiply_exact(sum_model(TensorUnit::blackwell, Format::e4m3, Accumulator::f32, 32), a, b, d.data(), 32);
        CHECK(d[0] == -32.0F * 240 * 240 - 1);
        CHECK(d[31] == d[0]);
        const std::vector<std::uint16_t> largest_f16(16 * 16, 0x7BFF);
        const ExactA ha({Format::f16, largest_f16.data(), 16, 1, false}, 1, 16);
        const ExactB hb({Format::f16, largest_f16.data(), 16, 1, false}, 16, 16);
        multiply_exact(sum_model(TensorUnit::blackwell, Format::f16, Accumulator::f32, 16), ha, hb, d.data(), 32,
                       {false, 0});
        CHECK(d[5] == 16.0F * (65504.0F * 65504.0F));
        // The accumulator has the exponent of the products: the sum needs a 33rd bit.
        for (const bool negate : {false, true}) {
            const ExactA na({Format::f16, largest_f16.data(), 16, 1, negate}, 1, 16);
            const float product = 65504.0F * 65504.0F;
            const float sign = negate ? -1.0F : 1.0F;
            d.assign(32, sign * 1.9999999F * 0x1p30F);
            const double exact = 16.0 * product + 1.9999999F * 0x1p30;
            multiply_exact(sum_model(TensorUnit::blackwell, Format::f16, Accumulator::f32, 16), na, hb, d.data(), 32);
            CHECK(d[5] == sign * float_from_double(exact, Rounding::toward_zero));
            CHECK(d[0] == d[15]);
        }
    });
}

TEST_CASE("wrong operands are refused")
{
    const std::vector<std::uint16_t> codes(64);
    const ExactA a({Format::f16, codes.data(), 8, 1, false}, 2, 8);
    const ExactB b({Format::f16, codes.data(), 4, 1, false}, 2, 4);
    std::vector<float> d(4);
    CHECK_THROWS_AS(multiply_exact({}, a, b, d.data(), 2), std::invalid_argument);
    CHECK_THROWS_AS(ExactA({Format::ue8m0, codes.data(), 8, 1, false}, 2, 8), std::invalid_argument);
}

TEST_CASE("mxf8: the scales add to the exponents")
{
    with_each_width([] {
        probe::Generator random(32);
        for (int round = 0; round < 120; ++round) {
            const bool any_scale = round % 4 == 3;
            const std::size_t m = 3;
            const std::size_t n = any_scale ? 1 + random.below(2) : 37;
            const std::size_t k = 32;
            const Tile a_tile(e4m3, m, k, true, random);
            const Tile b_tile(e2m1, n, k, true, random);
            std::vector<std::uint8_t> sa(m);
            std::vector<std::uint8_t> sb(n);
            const auto scale = [&] {
                const std::uint32_t near = any_scale ? random.below(256) : 127 - 8 + random.below(16);
                return static_cast<std::uint8_t>(random.one_in(20) ? 0xFF : near);
            };
            std::generate(sa.begin(), sa.end(), scale);
            std::generate(sb.begin(), sb.end(), scale);
            std::vector<float> d(m * n);
            for (float& value : d) {
                value = draw_accumulator(random, false);
            }
            const std::vector<float> before = d;
            multiply_exact_mxf8(sum_model(TensorUnit::blackwell, Format::e4m3, Accumulator::f32, k),
                                ExactA(a_tile.view(e4m3, m, k, true), m, k),
                                ExactB(b_tile.view(e2m1, n, k, true), n, k), sa.data(), sb.data(), d.data(), n);
            int wrong = 0;
            for (std::size_t i = 0; i < d.size(); ++i) {
                const std::size_t row = i / n;
                const std::size_t column = i % n;
                // Moves the exponent of the scales into the bias of A.
                probe::Bits scaled = e4m3.bits;
                scaled.bias -= sa[row] - 127 + sb[column] - 127;
                std::uint32_t expected =
                    slow::dot(&a_tile.codes[row * k], &b_tile.codes[column * k], static_cast<int>(k),
                              std::bit_cast<std::uint32_t>(before[i]), scaled, e2m1.bits, probe::bits_f32, {});
                if (sa[row] == 0xFF || sb[column] == 0xFF) {
                    expected = 0x7FFF'FFFF;
                }
                wrong += std::bit_cast<std::uint32_t>(d[i]) != expected;
            }
            CHECK(wrong == 0);
        }
    });
}

TEST_CASE("mxf4: groups of 16 are exact, then one sum of 35 fraction bits")
{
    with_each_width([] {
        probe::Generator random(33);
        for (int round = 0; round < 40; ++round) {
            const Format format = round % 2 == 0 ? Format::ue8m0 : Format::ue4m3;
            const std::size_t per_row = round % 4 < 2 ? 2 : 4;
            const std::size_t m = 3;
            const std::size_t n = 35;
            const std::size_t k = 64;
            std::vector<std::uint8_t> a(m * k);
            std::vector<std::uint8_t> b(n * k);
            // Some groups have no products, in others they cancel: E2M1 codes 0 and 8 are zeros, 1 and 9 are +-0.5.
            const bool mostly_zero = round % 3 == 2;
            for (auto* codes : {&a, &b}) {
                for (std::uint8_t& code : *codes) {
                    const std::uint32_t few = random.one_in(3) ? 1 + 8 * random.below(2) : 8 * random.below(2);
                    code = static_cast<std::uint8_t>(mostly_zero ? few : random.below(16));
                }
            }
            std::vector<std::uint8_t> sa(m * per_row);
            std::vector<std::uint8_t> sb(n * per_row);
            for (auto* codes : {&sa, &sb}) {
                for (std::uint8_t& code : *codes) {
                    const std::uint32_t any = random.below(256);
                    const std::uint32_t near = format == Format::ue8m0 ? 107 + random.below(40) : random.below(0x7F);
                    code = static_cast<std::uint8_t>(random.one_in(40) ? any : near);
                }
            }
            std::vector<float> d(m * n);
            for (float& value : d) {
                value = draw_accumulator(random, false);
            }
            const std::vector<float> before = d;
            const bool negate = random.one_in(2);
            const bool accumulate = !random.one_in(4);
            multiply_exact_mxf4(m, n, k, a.data(), b.data(), {format, per_row, sa.data(), sb.data()}, d.data(), n,
                                accumulate, negate);
            int wrong = 0;
            for (std::size_t i = 0; i < d.size(); ++i) {
                const std::size_t row = i / n;
                const std::size_t column = i % n;
                const probe::Bits scale_bits = format == Format::ue8m0 ? probe::Bits{0, 8, 127, false, 0, false}
                                                                       : probe::Bits{3, 4, 7, false, 0, true};
                slow::Model model;
                model.fraction_bits = 35;
                model.smallest_exponent = -139;
                std::vector<slow::Split> terms{
                    slow::split(accumulate ? std::bit_cast<std::uint32_t>(before[i]) : 0U, probe::bits_f32)};
                for (std::size_t first = 0; first < k; first += 16) {
                    double sum = 0;
                    bool has_products = false;
                    for (std::size_t j = first; j < first + 16; ++j) {
                        const double product =
                            double{float_from_e2m1(a[row * k + j])} * double{float_from_e2m1(b[column * k + j])};
                        sum += product;
                        has_products = has_products || product != 0;
                    }
                    const std::size_t which = first * per_row / k;
                    const std::uint8_t x = sa[row * per_row + which];
                    const std::uint8_t y = sb[column * per_row + which];
                    const std::uint8_t mask = format == Format::ue8m0 ? 0xFF : 0x7F;
                    slow::Split scale_x = slow::split(x & mask, scale_bits);
                    slow::Split scale_y = slow::split(y & mask, scale_bits);
                    if (format == Format::ue8m0) {  // every code is an exponent, including 0
                        scale_x = {false, false, x == 0xFF, 1, 0, x - 127};
                        scale_y = {false, false, y == 0xFF, 1, 0, y - 127};
                    }
                    slow::Split term;
                    term.nan = scale_x.nan || scale_y.nan;
                    term.sign = (sum < 0) != negate;
                    term.significand =
                        static_cast<slow::Wide>(std::fabs(sum) * 4) * scale_x.significand * scale_y.significand;
                    term.fraction = 2 + scale_x.fraction + scale_y.fraction;
                    term.exponent = scale_x.exponent + scale_y.exponent;
                    term.keeps_exponent = has_products && scale_x.significand * scale_y.significand != 0;
                    terms.push_back(term);
                }
                wrong += std::bit_cast<std::uint32_t>(d[i]) != slow::sum_of_terms(terms, model);
            }
            CHECK(wrong == 0);
        }
    });
    std::vector<float> d(1);
    const std::vector<std::uint8_t> codes(64);
    CHECK_THROWS_AS(multiply_exact_mxf4(1, 1, 24, codes.data(), codes.data(), {}, d.data(), 1), std::invalid_argument);
}
