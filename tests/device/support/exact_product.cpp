#include "exact_product.hpp"

namespace tessera::test {

HostMatrix small_integers(std::int64_t rows, std::int64_t columns, std::int64_t seed)
{
    HostMatrix matrix(rows, columns);
    for (std::size_t i = 0; i < matrix.values.size(); ++i) {
        const auto number = static_cast<std::int64_t>(i);
        matrix.values[i] = static_cast<float>((number * number + seed * number + number / 13) % 5 - 2);
    }
    return matrix;
}

void add_product(HostMatrix& sums, const HostMatrix& a, const HostMatrix& b, std::int64_t first, std::int64_t end)
{
    for (std::int64_t i = 0; i < sums.rows; ++i) {
        float* const sum = sums.values.data() + i * sums.columns;
        for (std::int64_t l = first; l < end; ++l) {
            const float factor = a.at(i, l);
            const float* const line = b.values.data() + l * b.columns;
            for (std::int64_t j = 0; j < sums.columns; ++j) {
                sum[j] += factor * line[j];
            }
        }
    }
}

}  // namespace tessera::test
