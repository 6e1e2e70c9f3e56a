// Integer, single-bit and f64 tensor-core kinds.

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "dispatch.hpp"
#include "float_ops.hpp"
#include "tensor_sum.hpp"

namespace tessera::emulator::numerics {
namespace {

struct IntegerProduct {
    std::size_t n, k;
    const std::int16_t* b;
    bool accumulate;
    bool saturate;
};

constexpr std::size_t columns_at_once = 64;

/// One row of D. |A*B| is below 2^16 for 8-bit elements, so 32 bits hold the products of K < 2^15. The addend needs
/// more bits only to detect overflow.
TESSERA_INLINE void integer_row(const IntegerProduct& p, const std::int16_t* a, std::int32_t* d)
{
    std::array<std::int32_t, columns_at_once> sums;
    for (std::size_t first = 0; first < p.n; first += columns_at_once) {
        const std::size_t width = std::min(columns_at_once, p.n - first);
        sums.fill(0);
        for (std::size_t k = 0; k < p.k; ++k) {
            const std::int32_t factor = a[k];
            const std::int16_t* const from = p.b + k * p.n + first;
            for (std::size_t i = 0; i < width; ++i) {
                sums[i] += factor * from[i];
            }
        }
        for (std::size_t i = 0; i < width; ++i) {
            const std::int64_t total = std::int64_t{sums[i]} + (p.accumulate ? d[first + i] : 0);
            constexpr std::int64_t low = std::numeric_limits<std::int32_t>::min();
            constexpr std::int64_t high = std::numeric_limits<std::int32_t>::max();
            d[first + i] = static_cast<std::int32_t>(p.saturate ? std::clamp(total, low, high) : total);
        }
    }
}

#if TESSERA_HAS_WIDE_VECTORS
TESSERA_TARGET_V4 void integer_row_avx512(const IntegerProduct& p, const std::int16_t* a, std::int32_t* d)
{
    integer_row(p, a, d);
}
TESSERA_TARGET_V3 void integer_row_avx2(const IntegerProduct& p, const std::int16_t* a, std::int32_t* d)
{
    integer_row(p, a, d);
}
#endif
void integer_row_portable(const IntegerProduct& p, const std::int16_t* a, std::int32_t* d) { integer_row(p, a, d); }

using IntegerRow = void (*)(const IntegerProduct&, const std::int16_t*, std::int32_t*);

IntegerRow pick_integer_row()
{
#if TESSERA_HAS_WIDE_VECTORS
    switch (detail::vector_unit()) {
        case detail::VectorUnit::avx512: return integer_row_avx512;
        case detail::VectorUnit::avx2: return integer_row_avx2;
        case detail::VectorUnit::portable: break;
    }
#endif
    return integer_row_portable;
}

}  // namespace

void multiply_integer(std::size_t m, std::size_t n, std::size_t k, const std::int16_t* a, const std::int16_t* b,
                      std::int32_t* d, std::size_t ldd, bool accumulate, bool saturate)
{
    const IntegerProduct p{n, k, b, accumulate, saturate};
    const IntegerRow compute = pick_integer_row();
    for (std::size_t row = 0; row < m; ++row) {
        compute(p, a + row * k, d + row * ldd);
    }
}

void multiply_bits(std::size_t m, std::size_t n, std::size_t words, const std::uint32_t* a, const std::uint32_t* b,
                   BitOperation operation, std::int32_t* d, std::size_t ldd, bool accumulate)
{
    for (std::size_t row = 0; row < m; ++row) {
        for (std::size_t column = 0; column < n; ++column) {
            std::uint32_t count = accumulate ? static_cast<std::uint32_t>(d[row * ldd + column]) : 0U;
            for (std::size_t i = 0; i < words; ++i) {
                const std::uint32_t x = a[row * words + i];
                const std::uint32_t y = b[column * words + i];
                count += static_cast<std::uint32_t>(std::popcount(operation == BitOperation::bit_and ? x & y : x ^ y));
            }
            d[row * ldd + column] = static_cast<std::int32_t>(count);
        }
    }
}

void multiply_f64(std::size_t m, std::size_t n, std::size_t k, const double* a, const double* b, double* d,
                  std::size_t ldd)
{
    for (std::size_t row = 0; row < m; ++row) {
        for (std::size_t column = 0; column < n; ++column) {
            double sum = d[row * ldd + column];
            for (std::size_t i = 0; i < k; ++i) {
                sum = fma_rn(a[row * k + i], b[i * n + column], sum);
            }
            d[row * ldd + column] = sum;
        }
    }
}

}  // namespace tessera::emulator::numerics
