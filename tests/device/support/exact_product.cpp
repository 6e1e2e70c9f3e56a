#include "exact_product.hpp"

namespace tessera::test {

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
