#include "problem/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>

#include "problem/parallel.hpp"

namespace tessera::bench {
namespace {

// At least this many vectors, if the matrix has them; more if one vector would otherwise stand for a group wider than
// any kernel's smallest tile; at most so many, to limit the work of the host.
constexpr std::int64_t fewest_vectors = 64;
constexpr std::int64_t widest_band = 64;
constexpr std::int64_t most_vectors = 512;

/// Returns one random index per group of equal size, always with the first and the last index, ascending. Returns all
/// indices if there are few.
std::vector<std::int64_t> sample_indices(std::int64_t extent, std::mt19937_64& generator)
{
    const std::int64_t bands =
        std::min(extent, std::clamp((extent + widest_band - 1) / widest_band, fewest_vectors, most_vectors));
    std::vector<std::int64_t> indices;
    for (std::int64_t band = 0; band < bands; ++band) {
        std::uniform_int_distribution<std::int64_t> inside(extent * band / bands, extent * (band + 1) / bands - 1);
        indices.push_back(inside(generator));
    }
    indices.front() = 0;
    indices.back() = extent - 1;
    return indices;
}

/// Returns the vectors of a matrix at `indices`, each with k neighbours, as double.
template <class T>
std::vector<double> gather(gsl::span<const T> matrix, const std::vector<std::int64_t>& indices, std::int64_t k,
                           std::int64_t vector_stride, std::int64_t k_stride)
{
    std::vector<double> vectors;
    vectors.reserve(indices.size() * static_cast<std::size_t>(k));
    for (const std::int64_t index : indices) {
        for (std::int64_t i = 0; i < k; ++i) {
            const auto offset = static_cast<std::size_t>(index * vector_stride + i * k_stride);
            vectors.push_back(static_cast<double>(static_cast<float>(matrix[offset])));
        }
    }
    return vectors;
}

double gamma(double roundings, double unit) { return roundings * unit / (1 - roundings * unit); }

// If rounding errors are independent and have mean zero, lambda * sqrt(k) * u is exceeded with a probability of at most
// 2k * exp(-lambda^2 / 2): 4e-17 for lambda = 10 and the longest sum that is measured (Higham and Mary, A New Approach
// to Probabilistic Rounding Error Analysis, 2019). For a long sum, gamma_k would let anything pass.
constexpr double lambda = 10;

/// The largest error of a sum of k products in Hopper's accumulator for 8-bit elements, as a fraction of the largest
/// partial sum. Each of k products and, for every 32 of them, the old sum are truncated 13 bits below the leading bit
/// of the largest: fewer than 2k truncations, each of at most 2^-13 of that.
double hopper_fp8_bound(double k) { return std::min(2 * k, lambda * std::sqrt(2 * k)) * 0x1p-13; }

/// The largest error of a sum of k products, as a fraction of the sum of their magnitudes.
double relative_bound(double k, double unit) { return std::min(gamma(k, unit), lambda * std::sqrt(k) * unit); }

double unit_roundoff(ElementType type)
{
    switch (type) {
        case ElementType::f16: return element_traits<f16>::unit_roundoff;
        case ElementType::bf16: return element_traits<bf16>::unit_roundoff;
        default: break;
    }
    return 0;  // D is what was accumulated
}

}  // namespace

template <class T>
SampledReference::SampledReference(const Problem& problem, gsl::span<const T> a, gsl::span<const T> b,
                                   std::uint64_t seed, const Addend& addend)
    : d_rows_(problem.shape.m), d_columns_(problem.d_columns()), k_(problem.shape.k), fusion_(problem.fusion)
{
    std::mt19937_64 generator(seed);
    rows_ = sample_indices(d_rows_, generator);
    columns_ = sample_indices(d_columns_, generator);
    const std::int64_t lda = problem.a_leading_dimension();
    const std::int64_t ldb = problem.b_leading_dimension();
    const bool a_rows = problem.orders.a_row_major;
    const bool b_rows = problem.orders.b_row_major;
    const std::vector<double> a_vectors = gather(a, rows_, k_, a_rows ? lda : 1, a_rows ? 1 : lda);
    const auto length = static_cast<std::size_t>(k_);
    const double scale = has_scales(fusion_) ? double{scale_of_a} * scale_of_b : 1;
    const auto sums_with = [&](const std::vector<std::int64_t>& columns_of_b) {
        const std::vector<double> b_vectors = gather(b, columns_of_b, k_, b_rows ? 1 : ldb, b_rows ? ldb : 1);
        std::vector<Sum> sums(rows_.size() * columns_.size());
        for_each_in_parallel(rows_.size(), [&](std::size_t row) {
            for (std::size_t column = 0; column < columns_.size(); ++column) {
                const double* x = &a_vectors[row * length];
                const double* y = &b_vectors[column * length];
                double value = 0;
                double magnitude = 0;
                double largest_sum = 0;
                double largest_product = 0;
                for (std::size_t i = 0; i < length; ++i) {
                    const double product = x[i] * y[i];
                    value += product;
                    magnitude += std::abs(product);
                    largest_sum = std::max(largest_sum, std::abs(value));
                    largest_product = std::max(largest_product, std::abs(product));
                }
                sums[row * columns_.size() + column] = {scale * value, scale * magnitude,
                                                        scale * (largest_sum + largest_product)};
            }
        });
        return sums;
    };
    sums_ = sums_with(columns_);
    if (is_gated(fusion_)) {
        std::vector<std::int64_t> others = columns_;
        for (std::int64_t& column : others) {
            column += d_columns_;
        }
        factors_ = sums_with(others);
    }
    for (const std::int64_t row : rows_) {
        for (const std::int64_t column : columns_) {
            addends_.push_back(addend ? addend(row, column) : 0);
        }
    }
}

template <class Output>
Verdict SampledReference::judge(gsl::span<const Output> d, Accumulation accumulation,
                                const EpilogueArithmetic& epilogue) const
{
    const auto columns = static_cast<std::size_t>(d_columns_);
    std::atomic<std::size_t> unwritten = d.size();
    for_each_in_parallel(static_cast<std::size_t>(d_rows_), [&](std::size_t row) {
        const auto elements = d.subspan(row * columns, columns);
        const auto found = std::find_if(elements.begin(), elements.end(),
                                        [](Output value) { return std::isnan(static_cast<float>(value)); });
        if (found != elements.end()) {
            unwritten = row * columns + static_cast<std::size_t>(found - elements.begin());
        }
    });
    if (const std::size_t index = unwritten; index != d.size()) {
        return {fmt::format("D({}, {}) was not written or is NaN", index / columns, index % columns), INFINITY};
    }
    const auto k = static_cast<double>(k_);
    const double unit = accumulation == Accumulation::fp32 ? 0x1p-24 : 4 * 0x1p-24;
    const double relative =
        relative_bound(k, unit) + gamma(k, 0x1p-53) + (accumulation == Accumulation::f16_sums ? 1.0 / 255 : 0.0);
    const double fp8 = hopper_fp8_bound(k);
    const double fp32_steps = gamma(2, 0x1p-24);  // an addition and a factor, or a product and a factor
    const double output_unit = unit_roundoff(element_traits<Output>::type);
    // The bound of a sum's error, once the addend is added.
    const auto error_of = [&](const Sum& sum, double addend) {
        double error = accumulation == Accumulation::hopper_fp8 ? fp8 * sum.peak : relative * sum.magnitude;
        if (fusion_ == Fusion::none) {
            return error;
        }
        if (epilogue.may_round_product) {
            error += output_unit * (std::abs(sum.value) + error);
        }
        error += fp32_steps * (std::abs(sum.value) + std::abs(addend));
        return epilogue.rounds_arguments ? error + output_unit * (std::abs(sum.value + addend) + error) : error;
    };
    Verdict verdict;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
        for (std::size_t column = 0; column < columns_.size(); ++column) {
            const std::size_t sample = row * columns_.size() + column;
            const auto found = static_cast<float>(
                d[static_cast<std::size_t>(rows_[row]) * columns + static_cast<std::size_t>(columns_[column])]);
            const double sum = sums_[sample].value + addends_[sample];
            double expected = activate(fusion_, epilogue.gelu, sum);
            double computed = activation_slope(fusion_) * error_of(sums_[sample], addends_[sample]) +
                              activation_error(fusion_, epilogue.gelu) * std::abs(sum);
            if (is_gated(fusion_)) {
                const Sum& factor = factors_[sample];
                const double error = error_of(factor, 0);
                computed = computed * (std::abs(factor.value) + error) + std::abs(expected) * error;
                expected *= factor.value;
                computed += fp32_steps * std::abs(expected);
            }
            const double bound = computed + output_unit * (std::abs(expected) + computed);
            const double error = std::abs(static_cast<double>(found) - expected);
            if (error > bound && verdict.fault.empty()) {
                verdict.fault =
                    fmt::format("D({}, {}) is {:.9g}; the float64 reference is {:.9g}, the error bound {:.3g}",
                                rows_[row], columns_[column], found, expected, bound);
            }
            if (error > 0) {
                verdict.error_over_bound = std::max(verdict.error_over_bound, error / bound);
            }
        }
    }
    return verdict;
}

template SampledReference::SampledReference(const Problem&, gsl::span<const f32>, gsl::span<const f32>, std::uint64_t,
                                            const Addend&);
template SampledReference::SampledReference(const Problem&, gsl::span<const f16>, gsl::span<const f16>, std::uint64_t,
                                            const Addend&);
template SampledReference::SampledReference(const Problem&, gsl::span<const bf16>, gsl::span<const bf16>, std::uint64_t,
                                            const Addend&);
template SampledReference::SampledReference(const Problem&, gsl::span<const tf32>, gsl::span<const tf32>, std::uint64_t,
                                            const Addend&);
template SampledReference::SampledReference(const Problem&, gsl::span<const f8e4m3>, gsl::span<const f8e4m3>,
                                            std::uint64_t, const Addend&);
template SampledReference::SampledReference(const Problem&, gsl::span<const f8e5m2>, gsl::span<const f8e5m2>,
                                            std::uint64_t, const Addend&);

template Verdict SampledReference::judge(gsl::span<const f32>, Accumulation, const EpilogueArithmetic&) const;
template Verdict SampledReference::judge(gsl::span<const f16>, Accumulation, const EpilogueArithmetic&) const;
template Verdict SampledReference::judge(gsl::span<const bf16>, Accumulation, const EpilogueArithmetic&) const;

}  // namespace tessera::bench
