#include "peers/cpu.hpp"

namespace tessera::bench {

void multiply_plain_loop(const Problem& problem, gsl::span<const float> a, gsl::span<const float> b, gsl::span<float> d)
{
    const auto [m, n, k] = problem.shape;
    const std::int64_t a_row = problem.orders.a_row_major ? k : 1;
    const std::int64_t a_column = problem.orders.a_row_major ? 1 : m;
    const std::int64_t b_row = problem.orders.b_row_major ? n : 1;
    const std::int64_t b_column = problem.orders.b_row_major ? 1 : k;
    // Raw pointers, because the spans' bounds checks would be timed, too.
    const float* const left = a.data();
    const float* const right = b.data();
    float* const out = d.data();
    for (std::int64_t row = 0; row < m; ++row) {
        for (std::int64_t column = 0; column < n; ++column) {
            float sum = 0;
            for (std::int64_t i = 0; i < k; ++i) {
                sum += left[row * a_row + i * a_column] * right[i * b_row + column * b_column];
            }
            out[row * n + column] = sum;
        }
    }
}

}  // namespace tessera::bench
