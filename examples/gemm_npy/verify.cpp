#include "verify.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "common/error_bound.hpp"

namespace {

std::vector<std::int64_t> choose_rows(const ReferenceProblem& problem, std::uint64_t seed, std::int64_t max_products)
{
    const std::int64_t products_per_row = std::max<std::int64_t>(problem.n * problem.k, 1);
    const std::int64_t count = std::min(std::max<std::int64_t>(max_products / products_per_row, 2), problem.m);
    std::vector<std::int64_t> rows;
    if (count == problem.m) {
        for (std::int64_t row = 0; row < problem.m; ++row) {
            rows.push_back(row);
        }
        return rows;
    }
    rows = {0, problem.m - 1};  // where tiles end
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::int64_t> any_row(0, problem.m - 1);
    while (static_cast<std::int64_t>(rows.size()) < count) {
        rows.push_back(any_row(random));
    }
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
}

/// Sums over k of one row of A*B: the products, and their magnitudes.
struct RowSums {
    std::vector<double> products;
    std::vector<double> magnitudes;
};

void sum_row(const ReferenceProblem& problem, std::int64_t row, RowSums& sums)
{
    const auto n = static_cast<std::size_t>(problem.n);
    sums.products.assign(n, 0.0);
    sums.magnitudes.assign(n, 0.0);
    if (problem.alpha == 0.0) {
        return;  // A and B are not read
    }
    for (std::int64_t k = 0; k < problem.k; ++k) {
        const double a = problem.a[static_cast<std::size_t>(row * problem.k + k)];
        const float* b = problem.b.data() + k * problem.n;
        for (std::size_t column = 0; column < n; ++column) {
            const double product = a * static_cast<double>(b[column]);  // exact: 24 + 24 bits fit into 53
            sums.products[column] += product;
            sums.magnitudes[column] += std::fabs(product);
        }
    }
}

/// The result in float64, and how much a right result may differ from it.
struct Expected {
    double value;
    double bound;
};

/// Each term of alpha * sum(a*b) + beta*c + bias passes through at most k + 3 roundings: k fused multiply-adds, the
/// scale, and the additions of C and bias. So the sum differs from the exact one by at most gamma_(k+3) times the sum
/// of the terms' magnitudes; the same holds for the reference with the u of float64. What the tensor core loses is
/// added. Activation and rounding to D's type follow.
Expected expect(const ReferenceProblem& problem, std::int64_t row, std::int64_t column, const RowSums& sums)
{
    const auto j = static_cast<std::size_t>(column);
    double sum = problem.alpha * sums.products[j];
    double magnitude = std::fabs(problem.alpha) * sums.magnitudes[j];
    const auto add = [&](double term) {
        sum += term;
        magnitude += std::fabs(term);
    };
    if (problem.beta != 0.0) {
        add(problem.beta * static_cast<double>(problem.c[static_cast<std::size_t>(row * problem.n + column)]));
    }
    if (problem.bias_axis != tessera::BiasAxis::none) {
        const std::int64_t index = problem.bias_axis == tessera::BiasAxis::per_row ? row : column;
        add(static_cast<double>(problem.bias[static_cast<std::size_t>(index)]));
    }

    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double largest = std::max(magnitude, sums.magnitudes[j]);
    if (!(largest <= static_cast<double>(std::numeric_limits<float>::max()))) {
        return {sum, infinity};
    }
    const double roundings = static_cast<double>(problem.k) + 3.0;
    const double underflow = roundings * std::max(1.0, std::fabs(problem.alpha)) * examples::f32_smallest;
    const double sum_error =
        (examples::gamma(roundings, examples::f32_roundoff) + examples::gamma(roundings, examples::f64_roundoff)) *
            magnitude +
        problem.product_loss * std::fabs(problem.alpha) * sums.magnitudes[j] + underflow;
    const double value = examples::activate(sum, problem.activation);
    const double error = examples::activation_error(sum, sum_error, problem.activation);
    const bool rounds_again = problem.output != tessera::ElementType::f32;  // the epilogue computes in float32
    return {value, error + (rounds_again ? examples::rounding_error(std::fabs(value) + error, problem.output) : 0.0)};
}

bool rounds_to_infinity(double magnitude, tessera::ElementType type)
{
    const auto value = static_cast<float>(magnitude);
    switch (type) {
        case tessera::ElementType::f16: return std::isinf(static_cast<float>(tessera::f16(value)));
        case tessera::ElementType::bf16: return std::isinf(static_cast<float>(tessera::bf16(value)));
        default: break;
    }
    return std::isinf(value);
}

}  // namespace

std::string Verdict::summary() const
{
    if (checked == 0) {
        return "no element could be checked: all inputs are not finite, or float32 may overflow";
    }
    if (wrong == 0) {
        return "every element is within its rounding error bound of float64 arithmetic (" + std::to_string(checked) +
               " checked)";
    }
    std::string ratio = "not a number, or infinite";
    if (std::isfinite(worst_ratio)) {
        std::array<char, 32> text{};
        std::snprintf(text.data(), text.size(), "%.3g", worst_ratio);
        ratio = std::string(text.data()) + " times its bound";
    }
    return "WRONG: " + std::to_string(wrong) + " of " + std::to_string(checked) +
           " elements are outside of their error bound; the largest error is " + ratio;
}

Verdict verify(const ReferenceProblem& problem, std::span<const float> d, std::uint64_t seed, std::int64_t max_products)
{
    Verdict verdict;
    RowSums sums;
    for (const std::int64_t row : choose_rows(problem, seed, max_products)) {
        sum_row(problem, row, sums);
        ++verdict.rows_checked;
        for (std::int64_t column = 0; column < problem.n; ++column) {
            const auto [expected, bound] = expect(problem, row, column, sums);
            if (std::isinf(bound)) {
                ++verdict.unbounded;
                continue;
            }
            ++verdict.checked;
            const double actual = static_cast<double>(d[static_cast<std::size_t>(row * problem.n + column)]);
            double error = std::fabs(actual - expected);
            if (std::isinf(actual) && std::signbit(actual) == std::signbit(expected) &&
                rounds_to_infinity(std::fabs(expected) + bound, problem.output)) {
                error = 0.0;  // both are beyond the range of D's type
            }
            const double ratio = std::isnan(error) ? std::numeric_limits<double>::infinity() : error / bound;
            verdict.wrong += ratio <= 1.0 ? 0 : 1;
            if (ratio >= verdict.worst_ratio) {
                verdict.worst_ratio = ratio;
                verdict.worst_row = row;
                verdict.worst_column = column;
                verdict.worst_actual = actual;
                verdict.worst_expected = expected;
            }
        }
    }
    return verdict;
}
