#pragma once

/// Checks a product against float64 arithmetic on the CPU, with an error bound for each element.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/element.hpp"
#include "tessera/epilogue_kind.hpp"

/// D = act(alpha * A*B + beta * C + bias) as the GPU was given it: the values after rounding to the compute type,
/// row-major.
struct ReferenceProblem {
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    std::vector<float> a;  // (m, k)
    std::vector<float> b;  // (k, n)
    std::vector<float> c;  // (m, n), read if beta is not 0
    std::vector<float> bias;
    tessera::BiasAxis bias_axis = tessera::BiasAxis::none;
    double alpha = 1.0;
    double beta = 0.0;
    tessera::Activation activation = tessera::Activation::none;
    tessera::ElementType output = tessera::ElementType::f32;
    double product_loss = 0.0;  // what A*B loses beyond float32, relative to the sum of the products' magnitudes
};

struct Verdict {
    std::int64_t rows_checked = 0;
    std::int64_t checked = 0;    ///< elements compared
    std::int64_t unbounded = 0;  ///< elements where float32 may overflow or an input is not finite: any result is
                                 ///< accepted
    std::int64_t wrong = 0;      ///< elements whose error is above its bound, or that are NaN
    double worst_ratio = 0.0;    ///< the largest error divided by its bound
    std::int64_t worst_row = 0;
    std::int64_t worst_column = 0;
    double worst_actual = 0.0;
    double worst_expected = 0.0;

    bool passed() const noexcept { return wrong == 0 && checked > 0; }

    /// One sentence: whether D is right, and how many elements were checked.
    std::string summary() const;
};

inline constexpr std::int64_t default_max_products = std::int64_t{1} << 30;  // about a second on one core

/// Compares all rows of D. If that needs more than `max_products` multiplications, it compares as many random rows as
/// fit, and always the first and the last.
/// @param d     row-major, m x n
/// @param seed  chooses the rows
Verdict verify(const ReferenceProblem& problem, std::span<const float> d, std::uint64_t seed,
               std::int64_t max_products = default_max_products);
