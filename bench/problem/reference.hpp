#pragma once

/// Judges results by a float64 reference at sampled elements, and the error bound of a product accumulated in fp32.
///
/// If each of k products passes through at most k roundings of unit u, their sum is off by at most gamma_k * sum |a||b|
/// with gamma_k = k*u / (1 - k*u), in whatever order it is summed, fused or not (Higham, Accuracy and Stability of
/// Numerical Algorithms, section 3.1). The reference's own error is bounded the same way, with float64's unit. A sum of
/// more than a hundred products must stay within the probabilistic bound, 10 * sqrt(k) * u. A D of 16 bits is rounded
/// once more, which its own unit roundoff bounds. An epilogue's additions are rounded twice in fp32, and its activation
/// multiplies the error by at most its slope. Of gated pairs, each factor multiplies the other's error.

#include <cstdint>
#include <functional>
#include <gsl/span>
#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace tessera::bench {

/// How a contender accumulates.
enum class Accumulation : std::uint8_t {
    fp32,         ///< IEEE additions or fused multiply-adds: u = 2^-24
    tensor_core,  ///< the addends of a block are aligned to the largest and truncated to 24 bits, each off by up to
                  ///< 2^-23 of the sum of magnitudes; b products and the old sum make (b + 1)/b <= 2 truncations per
                  ///< product: u = 4 * 2^-24
    hopper_fp8,   ///< Hopper's accumulator for 8-bit elements: addends are truncated 13 bits below the largest one
    f16_sums,  ///< `F16Accumulation::in_f16`: as tensor_core, and 64 products at a time are off by up to 1/255 of the
               ///< sum of their magnitudes
};

struct Verdict {
    /// A sentence; empty if the result is right.
    std::string fault;
    /// The largest error at a sampled element, as a fraction of its bound; at most 1 for a right result.
    double error_over_bound = 0;
};

class SampledReference {
public:
    using Addend = std::function<double(std::int64_t row, std::int64_t column)>;

    /// Computes the product where sampled rows and columns cross. Up to 64 rows (or columns) are all sampled. Otherwise
    /// one random row per group of at most 64 is, and always the first and the last. Beyond 32768 the groups grow:
    /// there are at most 512.
    ///
    /// @param addend  C(row, column) + bias(column), if the problem's epilogue adds something
    template <class T>
    SampledReference(const Problem& problem, gsl::span<const T> a, gsl::span<const T> b, std::uint64_t seed,
                     const Addend& addend = {});

    /// Judges a row-major D that was filled with NaN before the product was computed: each element must have been
    /// written, and the sampled elements must be within the bound.
    template <class Output>
    Verdict judge(gsl::span<const Output> d, Accumulation accumulation, const EpilogueArithmetic& epilogue = {}) const;
    Verdict judge(const std::vector<float>& d, Accumulation accumulation) const
    {
        return judge(gsl::span<const float>(d), accumulation);
    }

private:
    struct Sum {
        double value;      // sum of a * b
        double magnitude;  // sum of |a| * |b|
        double peak;       // largest partial sum in ascending k plus largest product
    };

    std::int64_t d_rows_;
    std::int64_t d_columns_;
    std::int64_t k_;
    Fusion fusion_;
    std::vector<std::int64_t> rows_;     // that are sampled
    std::vector<std::int64_t> columns_;  // of D
    std::vector<Sum> sums_;              // (rows, columns), row-major; of gated pairs, the gates
    std::vector<Sum> factors_;           // of gated pairs, what activated gates are multiplied with
    std::vector<double> addends_;        // 0 if the epilogue adds nothing
};

extern template SampledReference::SampledReference(const Problem&, gsl::span<const f32>, gsl::span<const f32>,
                                                   std::uint64_t, const Addend&);
extern template SampledReference::SampledReference(const Problem&, gsl::span<const f16>, gsl::span<const f16>,
                                                   std::uint64_t, const Addend&);
extern template SampledReference::SampledReference(const Problem&, gsl::span<const bf16>, gsl::span<const bf16>,
                                                   std::uint64_t, const Addend&);
extern template SampledReference::SampledReference(const Problem&, gsl::span<const tf32>, gsl::span<const tf32>,
                                                   std::uint64_t, const Addend&);
extern template SampledReference::SampledReference(const Problem&, gsl::span<const f8e4m3>, gsl::span<const f8e4m3>,
                                                   std::uint64_t, const Addend&);
extern template SampledReference::SampledReference(const Problem&, gsl::span<const f8e5m2>, gsl::span<const f8e5m2>,
                                                   std::uint64_t, const Addend&);

}  // namespace tessera::bench
