#include "problem/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace tessera::bench {
namespace {

constexpr std::int64_t sampled_vectors = 64;

/// All indices if there are few, else the first, the last and random ones between, ascending.
std::vector<std::int64_t> sample_indices(std::int64_t extent, std::mt19937_64& generator)
{
    std::vector<std::int64_t> indices;
    if (extent <= sampled_vectors) {
        indices.resize(static_cast<std::size_t>(extent));
        std::iota(indices.begin(), indices.end(), std::int64_t{0});
        return indices;
    }
    indices = {0, extent - 1};
    std::uniform_int_distribution<std::int64_t> between(1, extent - 2);
    while (static_cast<std::int64_t>(indices.size()) < sampled_vectors) {
        const std::int64_t index = between(generator);
        if (std::find(indices.begin(), indices.end(), index) == indices.end()) {
            indices.push_back(index);
        }
    }
    std::sort(indices.begin(), indices.end());
    return indices;
}

/// The vectors of a matrix at `indices`, each with k neighbours, as double.
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

}  // namespace

template <class T>
SampledReference::SampledReference(const Problem& problem, gsl::span<const T> a, gsl::span<const T> b,
                                   std::uint64_t seed)
    : shape_(problem.shape)
{
    std::mt19937_64 generator(seed);
    rows_ = sample_indices(shape_.m, generator);
    columns_ = sample_indices(shape_.n, generator);
    const auto [m, n, k] = shape_;
    const bool a_rows = problem.orders.a_row_major;
    const bool b_rows = problem.orders.b_row_major;
    const std::vector<double> a_vectors = gather(a, rows_, k, a_rows ? k : 1, a_rows ? 1 : m);
    const std::vector<double> b_vectors = gather(b, columns_, k, b_rows ? 1 : k, b_rows ? n : 1);

    const auto length = static_cast<std::size_t>(k);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
        for (std::size_t column = 0; column < columns_.size(); ++column) {
            const double* x = &a_vectors[row * length];
            const double* y = &b_vectors[column * length];
            double value = 0;
            double magnitude = 0;
            for (std::size_t i = 0; i < length; ++i) {
                value += x[i] * y[i];
                magnitude += std::abs(x[i] * y[i]);
            }
            values_.push_back(value);
            magnitudes_.push_back(magnitude);
        }
    }
}

Verdict SampledReference::judge(gsl::span<const float> d, Accumulation accumulation) const
{
    const auto columns = static_cast<std::size_t>(shape_.n);
    const auto unwritten = std::find_if(d.begin(), d.end(), [](float value) { return std::isnan(value); });
    if (unwritten != d.end()) {
        const auto index = static_cast<std::size_t>(unwritten - d.begin());
        return {fmt::format("D({}, {}) was not written or is NaN", index / columns, index % columns), INFINITY};
    }
    const auto k = static_cast<double>(shape_.k);
    const double unit = accumulation == Accumulation::fp32 ? 0x1p-24 : 4 * 0x1p-24;
    const double relative = gamma(k, unit) + gamma(k, 0x1p-53);
    Verdict verdict;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
        for (std::size_t column = 0; column < columns_.size(); ++column) {
            const std::size_t sample = row * columns_.size() + column;
            const float found =
                d[static_cast<std::size_t>(rows_[row]) * columns + static_cast<std::size_t>(columns_[column])];
            const double error = std::abs(static_cast<double>(found) - values_[sample]);
            const double bound = relative * magnitudes_[sample];
            if (error > bound && verdict.fault.empty()) {
                verdict.fault = fmt::format("D({}, {}) is {:.9g}, the float64 reference is {:.9g}, the bound is {:.3g}",
                                            rows_[row], columns_[column], found, values_[sample], bound);
            }
            if (error > 0) {
                verdict.error_over_bound = std::max(verdict.error_over_bound, error / bound);
            }
        }
    }
    return verdict;
}

template SampledReference::SampledReference(const Problem&, gsl::span<const f32>, gsl::span<const f32>, std::uint64_t);
template SampledReference::SampledReference(const Problem&, gsl::span<const f16>, gsl::span<const f16>, std::uint64_t);
template SampledReference::SampledReference(const Problem&, gsl::span<const bf16>, gsl::span<const bf16>,
                                            std::uint64_t);

}  // namespace tessera::bench
