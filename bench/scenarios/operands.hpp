#pragma once

/// What the scenarios share: random matrices on both sides, and the check of a product.

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "problem/random.hpp"
#include "problem/reference.hpp"
#include "scenarios/scenario.hpp"
#include "tessera/device_buffer.hpp"

namespace tessera::scenarios {

inline constexpr std::string_view product_bound =
    "the rounding of K products added up in fp32, and of D's type (tessera-bench's reference)";

/// Returns normal numbers times `scale`, rounded to T.
template <class T>
std::vector<T> normal_values(const Context& context, std::int64_t count, std::uint64_t sequence, float scale = 1)
{
    std::vector<float> values(static_cast<std::size_t>(count));
    bench::fill_normal<float>(values, context.seed, sequence);
    std::vector<T> rounded;
    rounded.reserve(values.size());
    for (const float value : values) {
        rounded.push_back(T(value * scale));
    }
    return rounded;
}

/// Returns a quiet NaN, with which outputs are filled, so that an element that is not written is noticed.
template <class T>
T poison()
{
    return T(std::numeric_limits<float>::quiet_NaN());
}

template <class T>
gsl::span<const std::byte> bytes_of(const std::vector<T>& values)
{
    return gsl::as_bytes(gsl::span<const T>(values));
}

/// Returns the problem D = act(A*B + addend), all row-major.
inline bench::Problem product_of(std::int64_t m, std::int64_t n, std::int64_t k, ElementType input, ElementType output,
                                 bench::Fusion fusion = bench::Fusion::none)
{
    bench::Problem problem{};
    problem.shape = {m, n, k};
    problem.input = input;
    problem.output = output;
    problem.fusion = fusion;
    return problem;
}

/// Judges D = A*B, all row-major, by a float64 reference at sampled elements.
/// @param addend  what the epilogue adds to an element
template <class T, class D>
Check check_product(const Context& context, std::string what, const bench::Problem& problem, gsl::span<const T> a,
                    gsl::span<const T> b, gsl::span<const D> d, bench::Accumulation accumulation,
                    const bench::SampledReference::Addend& addend = {})
{
    const bench::SampledReference reference(problem, a, b, context.seed, addend);
    const bench::Verdict verdict = reference.judge(d, accumulation);
    if (!verdict.fault.empty()) {
        what += ": " + verdict.fault;
    }
    return {std::move(what), std::string(product_bound),
            verdict.fault.empty() ? verdict.error_over_bound : std::numeric_limits<double>::infinity()};
}

}  // namespace tessera::scenarios
