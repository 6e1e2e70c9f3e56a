#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tensor_sum.hpp"

/// One sum of the exact path, for all elements of D. Private to the numerics folder.
namespace tessera::emulator::numerics::detail {

inline constexpr std::size_t longest_k = 512;

/// What is the same for all elements.
struct Sum {
    const SumModel* model;
    const ExactA* a;
    const ExactB* b;
    const std::uint16_t* order;  ///< which k, `count` of them
    std::size_t count;
    const std::int16_t* scale_a;  ///< exponents by row and column (a whole group can be read), or null
    const std::int16_t* scale_b;
    float* d;
    std::size_t ldd;
    bool accumulate;
    int scale_shift;
};

/// All of D, by float arithmetic: a product of two operands is exact in f32, and the conversion of a scaled product to
/// an integer cuts it as hardware does. Leaves rare exponents to sum_any().
void sum_usual(const Sum& sum);

/// `width` columns (at most one group) of a row, by integer arithmetic: any exponents, infinities and NaN.
void sum_any(const Sum& sum, std::size_t row, std::size_t column, std::size_t width);

}  // namespace tessera::emulator::numerics::detail
