// The fast path: blocks of D in registers, f32 fused multiply-adds in the order of k.
//
// Compile with -ffp-contract=fast, so that a product and a sum of vectors become one FMA. Otherwise, or on a processor
// without FMA, each product is rounded too, and the bound in tensor_sum.hpp doubles.

#include <algorithm>
#include <array>
#include <bit>

#include "dispatch.hpp"
#include "tensor_sum.hpp"

#if defined(__clang__)
#pragma clang fp contract(fast)
#endif

namespace tessera::emulator::numerics {
namespace {

template <int Bytes>
struct FloatVector;
template <>
struct FloatVector<16> {
    using type = float __attribute__((vector_size(16)));
};
template <>
struct FloatVector<32> {
    using type = float __attribute__((vector_size(32)));
};
template <>
struct FloatVector<64> {
    using type = float __attribute__((vector_size(64)));
};

struct Product {
    std::size_t m, n, k;
    const float* a;
    std::size_t lda;
    const float* b;
    std::size_t ldb;
    float* d;
    std::size_t ldd;
    bool accumulate;
};

/// Rows x (Columns vectors) of D at (row, column).
template <int Bytes, std::size_t Rows, std::size_t Columns>
TESSERA_INLINE void block(const Product& p, std::size_t row, std::size_t column)
{
    using Vector = typename FloatVector<Bytes>::type;
    constexpr std::size_t lanes = Bytes / sizeof(float);
    Vector sum[Rows][Columns];
    float* const d = p.d + row * p.ldd + column;
    for (std::size_t r = 0; r < Rows; ++r) {
        for (std::size_t c = 0; c < Columns; ++c) {
            sum[r][c] = Vector{};
            if (p.accumulate) {
                __builtin_memcpy(&sum[r][c], d + r * p.ldd + c * lanes, sizeof(Vector));
            }
        }
    }
    const float* const a = p.a + row * p.lda;
    for (std::size_t k = 0; k < p.k; ++k) {
        Vector b[Columns];
        for (std::size_t c = 0; c < Columns; ++c) {
            __builtin_memcpy(&b[c], p.b + k * p.ldb + column + c * lanes, sizeof(Vector));
        }
        for (std::size_t r = 0; r < Rows; ++r) {
            const float factor = a[r * p.lda + k];
            for (std::size_t c = 0; c < Columns; ++c) {
                sum[r][c] += factor * b[c];
            }
        }
    }
    for (std::size_t r = 0; r < Rows; ++r) {
        for (std::size_t c = 0; c < Columns; ++c) {
            __builtin_memcpy(d + r * p.ldd + c * lanes, &sum[r][c], sizeof(Vector));
        }
    }
}

/// The remaining columns, which do not fill a vector.
TESSERA_INLINE void narrow_block(const Product& p, std::size_t row, std::size_t rows, std::size_t column)
{
    for (std::size_t r = row; r < row + rows; ++r) {
        for (std::size_t c = column; c < p.n; ++c) {
            float sum = p.accumulate ? p.d[r * p.ldd + c] : 0.0F;
            for (std::size_t k = 0; k < p.k; ++k) {
                sum = __builtin_fmaf(p.a[r * p.lda + k], p.b[k * p.ldb + c], sum);
            }
            p.d[r * p.ldd + c] = sum;
        }
    }
}

template <int Bytes, std::size_t Rows, std::size_t Columns>
TESSERA_INLINE void rows_of_blocks(const Product& p, std::size_t row)
{
    constexpr std::size_t lanes = Bytes / sizeof(float);
    std::size_t column = 0;
    for (; column + Columns * lanes <= p.n; column += Columns * lanes) {
        block<Bytes, Rows, Columns>(p, row, column);
    }
    for (; column + lanes <= p.n; column += lanes) {
        block<Bytes, Rows, 1>(p, row, column);
    }
    if constexpr (Bytes > 32) {
        for (; column + 8 <= p.n; column += 8) {
            block<32, Rows, 1>(p, row, column);
        }
    }
    narrow_block(p, row, Rows, column);
}

template <int Bytes, std::size_t Rows, std::size_t Columns>
TESSERA_INLINE void multiply(const Product& p)
{
    std::size_t row = 0;
    for (; row + Rows <= p.m; row += Rows) {
        rows_of_blocks<Bytes, Rows, Columns>(p, row);
    }
    for (; row < p.m; ++row) {
        rows_of_blocks<Bytes, 1, Columns>(p, row);
    }
}

#if TESSERA_HAS_WIDE_VECTORS
TESSERA_TARGET_V4 void multiply_avx512(const Product& p) { multiply<64, 8, 2>(p); }
TESSERA_TARGET_V3 void multiply_avx2(const Product& p) { multiply<32, 4, 2>(p); }
#endif

/// Rounds to f16 like f16_from_float, without branches, and keeps the value in f32.
TESSERA_INLINE void round_row_to_f16(float* row, std::size_t n)
{
    for (std::size_t i = 0; i < n; ++i) {
        const auto bits = std::bit_cast<std::uint32_t>(row[i]);
        const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
        const std::uint32_t normal = (magnitude + 0xFFFU + ((magnitude >> 13) & 1U)) & 0xFFFF'E000U;
        const float subnormal = (std::bit_cast<float>(magnitude) + 0.5F) - 0.5F;
        std::uint32_t rounded = magnitude < 0x3880'0000U ? std::bit_cast<std::uint32_t>(subnormal) : normal;
        rounded = rounded >= 0x4780'0000U ? 0x7F80'0000U : rounded;
        rounded |= bits & 0x8000'0000U;
        row[i] = std::bit_cast<float>(magnitude > 0x7F80'0000U ? canonical_nan_f32 : rounded);
    }
}

}  // namespace

void multiply_fast(std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t lda, const float* b,
                   std::size_t ldb, float* d, std::size_t ldd, bool accumulate)
{
    const Product p{m, n, k, a, lda, b, ldb, d, ldd, accumulate};
#if TESSERA_HAS_WIDE_VECTORS
    switch (detail::vector_unit()) {
        case detail::VectorUnit::avx512: multiply_avx512(p); return;
        case detail::VectorUnit::avx2: multiply_avx2(p); return;
        case detail::VectorUnit::portable: break;
    }
#endif
    multiply<16, 4, 2>(p);
}

void round_tile_to_f16(std::size_t m, std::size_t n, float* d, std::size_t ldd)
{
    for (std::size_t row = 0; row < m; ++row) {
        round_row_to_f16(d + row * ldd, n);
    }
}

void scale_accumulator(std::size_t m, std::size_t n, float* d, std::size_t ldd, int shift)
{
    const float factor = 1.0F / static_cast<float>(1U << shift);
    for (std::size_t row = 0; row < m; ++row) {
        for (std::size_t column = 0; column < n; ++column) {
            d[row * ldd + column] *= factor;
        }
    }
}

}  // namespace tessera::emulator::numerics
