// The verification of gemm_npy: float32 results pass in any order of summation; wrong ones fail.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "gemm_npy/verify.hpp"

using tessera::Activation;
using tessera::BiasAxis;
using tessera::ElementType;

namespace {

ReferenceProblem random_problem(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& elements, std::int64_t size) {
        elements.resize(static_cast<std::size_t>(size));
        std::generate(elements.begin(), elements.end(), [&] { return normal(random); });
    };
    ReferenceProblem problem;
    problem.m = m;
    problem.n = n;
    problem.k = k;
    fill(problem.a, m * k);
    fill(problem.b, k * n);
    fill(problem.c, m * n);
    fill(problem.bias, m);
    problem.bias_axis = BiasAxis::per_row;
    problem.alpha = -0.75;
    problem.beta = 1.5;
    return problem;
}

float round_to(ElementType type, float value)
{
    switch (type) {
        case ElementType::f16: return static_cast<float>(tessera::f16(value));
        case ElementType::bf16: return static_cast<float>(tessera::bf16(value));
        default: break;
    }
    return value;
}

float activate(Activation activation, float x)
{
    switch (activation) {
        case Activation::relu: return x < 0.0F ? 0.0F : x;
        case Activation::gelu: return 0.5F * x * (1.0F + std::erf(x * 0.70710678118654752F));
        case Activation::silu: return x / (1.0F + std::exp(-x));
        case Activation::gelu_tanh: return x / (1.0F + std::exp(-x * (1.5957691216F + 0.0713548162726F * x * x)));
        case Activation::sigmoid: return 1.0F / (1.0F + std::exp(-x));
        case Activation::tanh: return std::tanh(x);
        case Activation::none: break;
    }
    return x;
}

/// Computes the product like a device, in float32, with k ascending or descending.
std::vector<float> compute_in_float(const ReferenceProblem& problem, bool descending)
{
    std::vector<float> d;
    for (std::int64_t row = 0; row < problem.m; ++row) {
        for (std::int64_t column = 0; column < problem.n; ++column) {
            float sum = 0.0F;
            for (std::int64_t i = 0; i < problem.k; ++i) {
                const std::int64_t k = descending ? problem.k - 1 - i : i;
                sum = std::fma(problem.a[static_cast<std::size_t>(row * problem.k + k)],
                               problem.b[static_cast<std::size_t>(k * problem.n + column)], sum);
            }
            float value = static_cast<float>(problem.alpha) * sum;
            if (problem.beta != 0.0) {
                value = std::fma(static_cast<float>(problem.beta),
                                 problem.c[static_cast<std::size_t>(row * problem.n + column)], value);
            }
            if (problem.bias_axis != BiasAxis::none) {
                value += problem.bias[static_cast<std::size_t>(problem.bias_axis == BiasAxis::per_row ? row : column)];
            }
            d.push_back(round_to(problem.output, activate(problem.activation, value)));
        }
    }
    return d;
}

}  // namespace

TEST_CASE("float32 results pass for every activation, output type and order of summation")
{
    const std::uint64_t seed = std::random_device{}();
    CAPTURE(seed);
    for (const auto activation : tessera::all_activations) {
        for (const auto output : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
            for (const std::int64_t k : {1, 7, 300}) {
                ReferenceProblem problem = random_problem(19, 23, k, seed);
                problem.activation = activation;
                problem.output = output;
                for (const bool descending : {false, true}) {
                    const Verdict verdict = verify(problem, compute_in_float(problem, descending), seed);
                    CAPTURE(verdict.worst_ratio);
                    CHECK(verdict.passed());
                    CHECK(verdict.checked == 19 * 23);
                    CHECK(verdict.rows_checked == 19);
                }
            }
        }
    }
}

TEST_CASE("one wrong element is found, even if it is wrong by a few bits only")
{
    ReferenceProblem problem = random_problem(9, 11, 64, 1);
    const std::vector<float> right = compute_in_float(problem, false);
    for (const std::size_t index : {0UL, 50UL, 98UL}) {
        std::vector<float> d = right;
        d[index] = d[index] + 0.001F;
        const Verdict verdict = verify(problem, d, 1);
        CHECK(!verdict.passed());
        CHECK(verdict.wrong == 1);
        CHECK(verdict.worst_ratio > 1.0);
        CHECK(verdict.worst_row * 11 + verdict.worst_column == static_cast<std::int64_t>(index));
        d[index] = std::numeric_limits<float>::quiet_NaN();
        CHECK(verify(problem, d, 1).wrong == 1);
        d[index] = std::numeric_limits<float>::infinity();
        CHECK(verify(problem, d, 1).wrong == 1);
    }
}

TEST_CASE("the summary says whether the product is right, wrong or unknown")
{
    ReferenceProblem problem = random_problem(9, 11, 64, 1);
    std::vector<float> d = compute_in_float(problem, false);
    CHECK(verify(problem, d, 1).summary() ==
          "every element is within its rounding error bound of float64 arithmetic (99 checked)");
    d[3] = std::numeric_limits<float>::quiet_NaN();
    CHECK(verify(problem, d, 1).summary() ==
          "WRONG: 1 of 99 elements are outside of their error bound; the largest error is not a number, or infinite");
    d[3] = 1e6F;
    CHECK(verify(problem, d, 1).summary().starts_with("WRONG: 1 of 99 elements are outside of their error bound"));
    CHECK(verify(problem, d, 1).summary().ends_with(" times its bound"));
    std::fill(problem.a.begin(), problem.a.end(), std::numeric_limits<float>::quiet_NaN());
    CHECK(!verify(problem, d, 1).passed());
    CHECK(verify(problem, d, 1).summary() ==
          "no element could be checked: all inputs are not finite, or float32 may overflow");
}

TEST_CASE("a bfloat16 result that was rounded the wrong way is found")
{
    ReferenceProblem problem = random_problem(5, 5, 1, 2);
    problem.output = ElementType::bf16;
    std::vector<float> d = compute_in_float(problem, false);
    // Two representable values away: rounding to nearest errs by half of one.
    d[7] = static_cast<float>(tessera::bf16::from_bits(static_cast<std::uint16_t>(tessera::bf16(d[7]).bits + 2)));
    CHECK(verify(problem, d, 2).wrong == 1);
}

TEST_CASE("a missing term is found")
{
    const ReferenceProblem problem = random_problem(8, 8, 32, 3);
    const auto fails_without = [&](auto&& change) {
        ReferenceProblem other = problem;
        change(other);
        return !verify(problem, compute_in_float(other, false), 3).passed();
    };
    CHECK(fails_without([](ReferenceProblem& p) { p.beta = 0.0; }));
    CHECK(fails_without([](ReferenceProblem& p) { p.bias_axis = BiasAxis::none; }));
    CHECK(fails_without([](ReferenceProblem& p) { p.bias_axis = BiasAxis::per_column; }));
    CHECK(fails_without([](ReferenceProblem& p) { p.alpha = 0.75; }));
    CHECK(fails_without([](ReferenceProblem& p) { p.activation = Activation::silu; }));
    CHECK(fails_without([](ReferenceProblem& p) { std::swap(p.a[0], p.a[1]); }));
}

TEST_CASE("infinity is right if D's type overflows, and unknown if float32 does")
{
    ReferenceProblem problem;
    problem.m = problem.n = problem.k = 1;
    problem.a = {300.0F};
    problem.b = {300.0F};
    problem.output = ElementType::f16;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    CHECK(verify(problem, std::vector{infinity}, 1).passed());
    CHECK(!verify(problem, std::vector{-infinity}, 1).passed());
    CHECK(!verify(problem, std::vector{65504.0F}, 1).passed());
    problem.output = ElementType::f32;
    CHECK(!verify(problem, std::vector{infinity}, 1).passed());

    problem.a = {1e30F};
    problem.b = {1e30F};
    const Verdict verdict = verify(problem, std::vector{infinity}, 1);
    CHECK(verdict.unbounded == 1);
    CHECK(verdict.checked == 0);
    CHECK(!verdict.passed());  // nothing was verified
}

TEST_CASE("with alpha 0, A and B do not affect the result")
{
    ReferenceProblem problem = random_problem(3, 3, 4, 5);
    problem.alpha = 0.0;
    problem.a.assign(problem.a.size(), std::numeric_limits<float>::quiet_NaN());
    std::vector<float> d;
    for (std::size_t i = 0; i < 9; ++i) {
        d.push_back(std::fma(1.5F, problem.c[i], 0.0F) + problem.bias[i / 3]);
    }
    const Verdict verdict = verify(problem, d, 5);
    CHECK(verdict.passed());
    CHECK(verdict.checked == 9);
}

TEST_CASE("many rows are sampled, the first and the last always")
{
    const ReferenceProblem problem = random_problem(100, 10, 10, 6);
    std::vector<float> d = compute_in_float(problem, false);
    const auto check = [&](std::int64_t max_products) { return verify(problem, d, 7, max_products); };
    CHECK(check(100 * 10 * 10).rows_checked == 100);
    CHECK(check(0).rows_checked == 2);
    const Verdict verdict = check(30 * 10 * 10);
    CHECK(verdict.passed());
    CHECK(verdict.rows_checked > 2);
    CHECK(verdict.rows_checked <= 30);
    CHECK(verdict.checked == 10 * verdict.rows_checked);
    for (const std::size_t index : {0UL, 999UL}) {
        const float right = d[index];
        d[index] += 1.0F;
        CHECK(check(0).wrong == 1);
        d[index] = right;
    }
}
