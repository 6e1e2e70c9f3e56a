#pragma once

/// Products of matrices of small integers on the host. They are exact in float, in any order, while no sum exceeds 2^24.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::test {

/// A row-major matrix without gaps.
struct HostMatrix {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::vector<float> values;

    HostMatrix(std::int64_t r, std::int64_t c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}

    float& at(std::int64_t row, std::int64_t column)
    {
        return values[static_cast<std::size_t>(row * columns + column)];
    }
    float at(std::int64_t row, std::int64_t column) const
    {
        return values[static_cast<std::size_t>(row * columns + column)];
    }
};

/// Returns a matrix of integers from -2 to 2, in a pattern that repeats after 65 elements: a piece that is 8, 16, ... elements off shows.
HostMatrix small_integers(std::int64_t rows, std::int64_t columns, std::int64_t seed);

/// Adds a(i, l) * b(l, j) to sums(i, j) for all l from `first` on and below `end`.
void add_product(HostMatrix& sums, const HostMatrix& a, const HostMatrix& b, std::int64_t first, std::int64_t end);

inline void add_product(HostMatrix& sums, const HostMatrix& a, const HostMatrix& b)
{
    add_product(sums, a, b, 0, a.columns);
}

}  // namespace tessera::test
