/// Tests of what the device tests rely on: the error bound, the signature data, the covering designs and the search for
/// wrong elements. Needs no device.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "support/gemm_case.hpp"
#include "support/pair_covering.hpp"
#include "support/signature.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

/// A kernel's computation on the host: the fp32 chain, with std::erf and std::exp rounded as by the best library.
float simulated(const double* a, const double* b, std::int64_t k, const ElementEpilogue& epilogue)
{
    float sum = 0;
    for (std::int64_t i = 0; i < k; ++i) {
        sum = std::fma(static_cast<float>(a[i]), static_cast<float>(b[i]), sum);
    }
    float x = epilogue.alpha * sum;
    if (epilogue.beta != 0) {
        x = std::fma(epilogue.beta, static_cast<float>(epilogue.c), x);
    }
    if (epilogue.has_bias) {
        x += static_cast<float>(epilogue.bias);
    }
    switch (epilogue.activation) {
        case Activation::none: return x;
        case Activation::relu: return x < 0 ? 0 : x;
        case Activation::gelu: {
            const float t = x * 0.70710678118654752F;
            const float twice_phi = 1.0F + static_cast<float>(std::erf(static_cast<double>(t)));
            return 0.5F * x * twice_phi;
        }
        case Activation::silu: return x / (1.0F + static_cast<float>(std::exp(-static_cast<double>(x))));
        case Activation::gelu_tanh: {
            const float z = x * std::fma(x * x, 0.0713548162726F, 1.5957691216F);
            return x / (1.0F + static_cast<float>(std::exp(-static_cast<double>(z))));
        }
        case Activation::sigmoid: return 1.0F / (1.0F + static_cast<float>(std::exp(-static_cast<double>(x))));
        case Activation::tanh: return static_cast<float>(std::tanh(static_cast<double>(x)));
    }
    return x;
}

std::vector<double> random_values(std::mt19937_64& engine, std::int64_t count, double scale)
{
    std::uniform_real_distribution<double> distribution(-scale, scale);
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) {
        values.push_back(static_cast<float>(distribution(engine)));
    }
    return values;
}

/// Runs `gemm` on the host. `spoil` may change the row, column and k that are read, like a wrong kernel.
template <class Spoil>
HostArray launch_on_host(const GemmCase& gemm, const GemmData& data, const Spoil& spoil)
{
    HostArray result = data.d;
    for (std::int64_t batch = 0; batch < gemm.batches; ++batch) {
        for (std::int64_t row = 0; row < gemm.m; ++row) {
            for (std::int64_t column = 0; column < gemm.n; ++column) {
                float sum = 0;
                for (std::int64_t k = 0; k < (gemm.alpha == 0 ? 0 : gemm.k); ++k) {
                    std::int64_t r = row;
                    std::int64_t c = column;
                    std::int64_t k_a = k;
                    std::int64_t k_b = k;
                    spoil(r, c, k_a, k_b);
                    if (k_a < gemm.k && k_b < gemm.k && r < gemm.m && c < gemm.n) {
                        sum = std::fma(data.a.get(data.a_place.index(batch, r, k_a)),
                                       data.b.get(data.b_place.index(batch, k_b, c)), sum);
                    }
                }
                float value = gemm.alpha * (gemm.row_scales ? 1 : gemm.scale_a.value_or(1)) *
                              (gemm.column_scales ? 1 : gemm.scale_b.value_or(1)) * sum;
                value *= (gemm.has_row_scales() ? static_cast<float>(data.scales.get(
                                                      static_cast<std::size_t>(GemmData::first_scale_vector + row)))
                                                : 1.0F) *
                         (gemm.has_column_scales() ? static_cast<float>(data.scales.get(static_cast<std::size_t>(
                                                         GemmData::first_scale_vector + gemm.m + column)))
                                                   : 1.0F);
                if (gemm.beta != 0) {
                    value =
                        std::fma(gemm.beta,
                                 gemm.addend == Addend::in_place ? data.d.get(data.d_place.index(batch, row, column))
                                                                 : data.c.get(data.c_place.index(batch, row, column)),
                                 value);
                }
                if (gemm.bias != BiasAxis::none) {
                    value += data.bias.get(static_cast<std::size_t>(guard_elements + gemm.bias_offset +
                                                                    (gemm.bias == BiasAxis::per_row ? row : column)));
                }
                if (gemm.activation == Activation::relu) {
                    value = value < 0 ? 0.0F : value;
                }
                result.set(data.d_place.index(batch, row, column), value);
            }
        }
    }
    return result;
}

constexpr auto nothing_spoiled = [](std::int64_t&, std::int64_t&, std::int64_t&, std::int64_t&) {};

GemmCase signature_case(std::int64_t m, std::int64_t n, std::int64_t k)
{
    GemmCase gemm;
    gemm.m = m;
    gemm.n = n;
    gemm.k = k;
    gemm.data = Data::signature;
    return gemm;
}

}  // namespace

TEST_CASE("fp32 arithmetic stays within the bound, for all epilogues and output types")
{
    std::mt19937_64 engine = random_engine(1);
    for (int round = 0; round < 4000; ++round) {
        const auto k = static_cast<std::int64_t>(engine() % 200);
        const double scale = std::ldexp(1.0, static_cast<int>(engine() % 8) - 4);
        const auto a = random_values(engine, k, scale);
        const auto b = random_values(engine, k, 1);
        const auto extra = random_values(engine, 4, 2);
        ElementEpilogue epilogue;
        epilogue.alpha = static_cast<float>(extra[0]);
        epilogue.beta = static_cast<float>(extra[1]);
        epilogue.c = extra[2];
        epilogue.has_bias = engine() % 2 == 0;
        epilogue.bias = extra[3];
        epilogue.activation = all_activations[engine() % all_activations.size()];
        const float result = simulated(a.data(), b.data(), k, epilogue);
        const Bounded before = epilogue_of(bounded(sum_of_products(a.data(), b.data(), k), k), epilogue);
        CHECK(agrees(before, result));
        for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
            const float narrowed = HostArray::widened(type, HostArray::narrowed(type, result));
            CHECK(agrees(stored(before, type), narrowed, type));
        }
    }
}

TEST_CASE("a result that may be too large for f16 may be infinite, and no other")
{
    const double infinity = std::numeric_limits<double>::infinity();
    const auto allows = [](double value, double error, double actual) {
        return agrees(stored({value, error}, ElementType::f16), actual, ElementType::f16);
    };
    CHECK(allows(-82102, 1000, -infinity));
    CHECK_FALSE(allows(-82102, 1000, infinity));
    CHECK_FALSE(allows(-82102, 1000, -65504));
    CHECK(allows(-88000, 102000, -infinity));
    CHECK(allows(-88000, 102000, -20000));
    CHECK_FALSE(allows(-88000, 102000, std::nan("")));
    CHECK(allows(65500, 100, infinity));
    CHECK(allows(65500, 100, 65504));
    CHECK_FALSE(allows(65500, 100, 60000));
    CHECK_FALSE(allows(65500, 100, -infinity));
    CHECK(allows(65000, 100, 65024));
    CHECK_FALSE(allows(65000, 100, infinity));
    CHECK_FALSE(agrees(stored({-82102, 1000}, ElementType::bf16), -infinity, ElementType::bf16));
}

TEST_CASE("the bound for the activations is tight and holds on a fine grid, also if exp overflows")
{
    for (const Activation activation : {Activation::gelu, Activation::silu, Activation::gelu_tanh, Activation::tanh}) {
        for (double x = -200; x < 200; x += 0.0078125) {
            ElementEpilogue epilogue;
            epilogue.activation = activation;
            const double one = 1;
            const Bounded expected = activated({x, 0}, activation);
            CHECK(agrees(expected, simulated(&x, &one, 1, epilogue)));
            CHECK(expected.error <= 16 * unit_f32 * std::abs(x) + 0x1p-120);  // a few ulp of x
        }
    }
}

TEST_CASE("the bound is tight enough to detect a missing product")
{
    std::mt19937_64 engine = random_engine(2);
    for (const std::int64_t k : {2, 33, 100, 1000}) {
        std::vector<double> a = random_values(engine, k, 1);
        const std::vector<double> b(static_cast<std::size_t>(k), 1.0);
        const Bounded expected = bounded(sum_of_products(a.data(), b.data(), k), k);
        a[static_cast<std::size_t>(k / 2)] += 0.125;
        CHECK_FALSE(agrees(expected, sum_of_products(a.data(), b.data(), k).value));
    }
}

TEST_CASE("a correct result passes: every layout, type and exact epilogue")
{
    std::mt19937_64 engine = random_engine(3);
    const std::vector<int> levels{4, 4, 3, static_cast<int>(input_types.size()), 3, 2, 2, 2, 2, 3, 3, 3, 3, 2, 3};
    for (const Combination& c : pair_covering(levels, engine)) {
        GemmCase gemm;
        gemm.m = std::array{0, 1, 5, 17}[static_cast<std::size_t>(c[0])];
        gemm.n = std::array{0, 1, 6, 18}[static_cast<std::size_t>(c[1])];
        gemm.k = std::array{0, 1, 19}[static_cast<std::size_t>(c[2])];
        gemm.input = input_types[static_cast<std::size_t>(c[3])];
        gemm.output = static_cast<ElementType>(c[4]);
        gemm.a.row_major = c[5] != 0;
        gemm.b.row_major = c[6] != 0;
        gemm.c.row_major = c[7] != 0;
        gemm.d.row_major = c[8] != 0;
        gemm.a.padding = c[9];
        gemm.d.padding = c[10];
        gemm.addend = static_cast<Addend>(c[11]);
        gemm.beta = gemm.addend == Addend::none ? 0 : 0.5F;
        gemm.bias = static_cast<BiasAxis>(c[12]);
        gemm.data = c[13] != 0 ? Data::signature : Data::random;
        gemm.batches = 1 + c[14];
        gemm.a.shared = gemm.b.shared = gemm.c.shared = c[14] == 2;
        gemm.alpha = gemm.output == ElementType::f16 ? 0x1p-9F : 1.0F;
        const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
        const HostArray result = launch_on_host(gemm, data, nothing_spoiled);
        const std::string problem = gemm.describe();
        CAPTURE(problem);
        CHECK(find_wrong_element(gemm, data, result) == std::nullopt);
        CHECK(find_other_than_fma_chain(gemm, data, result) == std::nullopt);
    }
}

TEST_CASE("operands that must not be read do not affect the result")
{
    GemmCase gemm = signature_case(5, 7, 3);
    gemm.alpha = 0;
    gemm.beta = 0;
    gemm.addend = Addend::separate;
    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
    CHECK(std::isnan(data.a.get(data.a_place.index(0, 1, 1))));
    CHECK(std::isnan(data.c.get(data.c_place.index(0, 1, 1))));
    CHECK(find_wrong_element(gemm, data, launch_on_host(gemm, data, nothing_spoiled)) == std::nullopt);
}

TEST_CASE("every wrong element, unwritten element and overwritten guard is found")
{
    GemmCase gemm = signature_case(9, 6, 4);
    gemm.d.padding = 2;
    gemm.batches = 2;
    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
    const HostArray right = launch_on_host(gemm, data, nothing_spoiled);
    const Reference reference(gemm, data);  // used for all results
    REQUIRE(reference.find_wrong_element(right) == std::nullopt);
    for (std::size_t i = 0; i < right.size(); ++i) {
        HostArray wrong = right;
        wrong.set_bits(i, right.bits(i) ^ 0x00400000U);
        CHECK(reference.find_wrong_element(wrong).has_value());
    }
    HostArray unwritten = right;
    unwritten.set_bits(data.d_place.index(1, 8, 5), poison_bits(gemm.output));
    CHECK(reference.find_wrong_element(unwritten).value_or("").find("never written") != std::string::npos);
    CHECK(reference.find_wrong_element(right) == std::nullopt);
}

TEST_CASE("signature data expose every permuted, repeated or omitted index")
{
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{16, 16, 8}, {33, 65, 9}, {65, 33, 33}, {17, 257, 8}}) {
        const GemmCase gemm = signature_case(m, n, k);
        const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
        const auto is_found = [&](const auto& spoil) {
            return find_wrong_element(gemm, data, launch_on_host(gemm, data, spoil)).has_value();
        };
        using Index = std::int64_t;
        for (const Index bit : {1, 2, 4, 8}) {
            CHECK(is_found([&](Index& r, Index&, Index&, Index&) { r = (r ^ bit) < gemm.m ? r ^ bit : r; }));
            CHECK(is_found([&](Index&, Index& c, Index&, Index&) { c = (c ^ bit) < gemm.n ? c ^ bit : c; }));
            CHECK(is_found([&](Index& r, Index& c, Index&, Index&) {  // both at once
                r = (r ^ bit) < gemm.m ? r ^ bit : r;
                c = (c ^ bit) < gemm.n ? c ^ bit : c;
            }));
        }
        for (Index left = 0; left < k; ++left) {
            CHECK(
                is_found([&](Index&, Index&, Index& k_a, Index&) { k_a = k_a == left ? gemm.k : k_a; }));  // forgotten
            for (Index right = 0; right < k; ++right) {
                if (left != right) {  // the k of A is right and the k of B is not
                    CHECK(is_found([&](Index&, Index&, Index&, Index& k_b) { k_b = k_b == left ? right : k_b; }));
                    CHECK(is_found([&](Index&, Index&, Index& k_a, Index& k_b) {  // one k twice, another not at all
                        k_a = k_b = k_b == left ? right : k_b;
                    }));
                }
            }
        }
    }
}

TEST_CASE("signature sums are exact in fp32 up to the longest K, and rows and columns differ")
{
    double largest = 0;
    for (std::int64_t k = 0; k < longest_exact_k; ++k) {
        largest += 251.0 * 241.0 * static_cast<double>(1 << k % 3);
    }
    CHECK(largest <= 0x1p24);
    std::set<std::vector<float>> rows;
    std::set<std::vector<float>> columns;
    for (std::int64_t x = 0; x < 257; ++x) {
        rows.insert({signature_a(x, 0), signature_a(x, 1)});
        columns.insert({signature_b(0, x), signature_b(1, x)});
    }
    CHECK(rows.size() == 257);
    CHECK(columns.size() == 257);
    CHECK(HostArray::widened(ElementType::bf16, HostArray::narrowed(ElementType::bf16, 251)) == 251);
    CHECK(HostArray::widened(ElementType::bf16, HostArray::narrowed(ElementType::bf16, 964)) == 964);
}

TEST_CASE("an epilogue counts as exact only if fp32 need not round")
{
    ElementEpilogue epilogue{.alpha = 4, .beta = -0.5F, .c = 3, .has_bias = true, .bias = 2};
    CHECK(exact_epilogue_of(1000, epilogue) == 4000.5);
    CHECK(exact_epilogue_of(-2245574, epilogue) == std::nullopt);  // floats above 2^23 have no halves
    epilogue.c = 4;
    CHECK(exact_epilogue_of(-2245574, epilogue) == -8982296.0);
    epilogue.bias = 8e6;  // the result has halves, but the sum before it does not
    epilogue.c = 3;
    CHECK(exact_epilogue_of(-2245574, epilogue) == std::nullopt);
}

TEST_CASE("a covering design has every pair, in far fewer combinations than the full product")
{
    std::mt19937_64 engine = random_engine(4);
    const std::vector<int> levels{7, 5, 3, 4, 2, 2};
    const auto combinations = pair_covering(levels, engine);
    std::set<std::array<int, 4>> pairs;
    for (const Combination& combination : combinations) {
        for (int f = 0; f < 6; ++f) {
            for (int g = f + 1; g < 6; ++g) {
                pairs.insert(
                    {f, combination[static_cast<std::size_t>(f)], g, combination[static_cast<std::size_t>(g)]});
            }
        }
    }
    std::size_t expected = 0;
    for (std::size_t f = 0; f < 6; ++f) {
        for (std::size_t g = f + 1; g < 6; ++g) {
            expected += static_cast<std::size_t>(levels[f] * levels[g]);
        }
    }
    CHECK(pairs.size() == expected);
    CHECK(combinations.size() < 80);
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::nothing); }
