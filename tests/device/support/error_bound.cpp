#include "error_bound.hpp"

#include <cstring>

namespace tessera::test {
namespace {

using Doubles = double __attribute__((vector_size(16)));
using Integers = std::int64_t __attribute__((vector_size(16)));
constexpr std::int64_t lanes = 2;
constexpr std::int64_t chains = 4;

Doubles load(const double* values)
{
    Doubles result;
    std::memcpy(&result, values, sizeof result);
    return result;
}

Doubles absolute(Doubles values)
{
    Integers bits;
    std::memcpy(&bits, &values, sizeof bits);
    bits &= std::numeric_limits<std::int64_t>::max();
    std::memcpy(&values, &bits, sizeof values);
    return values;
}

}  // namespace

SumOfProducts sum_of_products(const double* a, const double* b, std::int64_t k)
{
    // Sums of lanes, four at a time, so that an addition does not wait for the one before. The bounds hold for any order.
    Doubles values[chains] = {};
    Doubles magnitudes[chains] = {};
    std::int64_t i = 0;
    for (; i + chains * lanes <= k; i += chains * lanes) {
        for (std::int64_t chain = 0; chain < chains; ++chain) {
            const Doubles products =
                load(a + i + chain * lanes) * load(b + i + chain * lanes);  // exact: 24 times 24 bits
            values[chain] += products;
            magnitudes[chain] += absolute(products);
        }
    }
    SumOfProducts sum;
    for (; i < k; ++i) {
        sum.value += a[i] * b[i];
        sum.magnitude += std::abs(a[i] * b[i]);
    }
    for (std::int64_t chain = 0; chain < chains; ++chain) {
        sum.value += values[chain][0] + values[chain][1];
        sum.magnitude += magnitudes[chain][0] + magnitudes[chain][1];
    }
    return sum;
}

}  // namespace tessera::test
