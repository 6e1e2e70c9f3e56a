#pragma once

/// What an element of a product must be: its terms added in float64, and the largest error of a right result.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "common/error_bound.hpp"

namespace examples {

/// The sum of one element's terms, alpha and beta included: products first, then C and the bias.
class ExactSum {
public:
    void add(double term)
    {
        sum_ += term;
        magnitude_ += std::fabs(term);
        terms_ += 1.0;
    }
    double value() const { return sum_; }

    /// Returns true if `result` is the sum, after the activation, in an output type. Each term passes through two
    /// scalings and at most as many float32 additions as there are terms. Tensor cores truncate instead of rounding,
    /// which loses twice as much.
    bool allows(double result, tessera::ElementType type,
                tessera::Activation activation = tessera::Activation::none) const
    {
        const double roundings = terms_ + 2.0;
        const double sum_error = gamma(roundings, 2.0 * f32_roundoff) * magnitude_ + roundings * f32_smallest;
        const double expected = activate(sum_, activation);
        const double error = activation_error(sum_, sum_error, activation);
        return std::fabs(result - expected) <= error + rounding_error(std::fabs(expected) + error, type);
    }

private:
    double sum_ = 0.0;
    double magnitude_ = 0.0;
    double terms_ = 0.0;
};

/// Values from -1 to 1, the same for the same seed.
template <class T>
std::vector<T> random_values(std::size_t count, std::uint32_t seed)
{
    std::vector<T> values;
    values.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        seed = 1664525U * seed + 1013904223U;  // the linear congruential generator of Numerical Recipes
        values.push_back(T(static_cast<float>(seed >> 8) * 0x1p-23F - 1.0F));
    }
    return values;
}

}  // namespace examples
