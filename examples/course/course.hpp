#pragma once

/// What the chapters' programs share: matrices in device memory, and the check of D = A * B^T.

#include <tessera/tessera.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

#include "common/run_example.hpp"

namespace course {

using namespace tessera;

/// A (m, k) and B (n, k) of small integers, so that every sum is exact, and D (m, n), which begins as NaN.
class Product {
public:
    Product(std::size_t m, std::size_t n, std::size_t k)
        : m_(m),
          n_(n),
          k_(k),
          host_a_(small_integers(m * k, 1)),
          host_b_(small_integers(n * k, 2)),
          a_(DeviceBuffer<bf16>::from_host(stream, host_a_)),
          b_(DeviceBuffer<bf16>::from_host(stream, host_b_)),
          b_by_k_(DeviceBuffer<bf16>::from_host(stream, transposed(host_b_, n, k))),
          d_(DeviceBuffer<float>::from_host(stream, std::vector<float>(m * n, std::numeric_limits<float>::quiet_NaN())))
    {}

    MatrixView<const bf16> a() const { return a_.matrix(rows(m_), rows(k_)); }
    MatrixView<const bf16> b() const { return b_.matrix(rows(n_), rows(k_)); }
    /// The same B as (k, n): rows along K.
    MatrixView<const bf16> b_by_k() const { return b_by_k_.matrix(rows(k_), rows(n_)); }
    MatrixView<float> d() { return d_.matrix(rows(m_), rows(n_)); }

    /// Overwrites D, by what a program has computed elsewhere.
    void replace_d(const std::vector<float>& d) { d_ = DeviceBuffer<float>::from_host(stream, d); }

    /// Returns the number of elements of D that are not `finish(sum, column)`.
    template <class Finish>
    std::size_t wrong(Finish finish) const
    {
        const auto d = d_.to_vector();
        const std::vector<int> a = as_integers(host_a_), b = as_integers(host_b_);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < m_; ++i) {
            for (std::size_t j = 0; j < n_; ++j) {
                int sum = 0;
                for (std::size_t l = 0; l < k_; ++l) {
                    sum += a[i * k_ + l] * b[j * k_ + l];
                }
                wrong += d[i * n_ + j] == finish(static_cast<float>(sum), j) ? 0 : 1;
            }
        }
        return wrong;
    }

    Stream stream;  // first: it must outlive the buffers

private:
    static std::int64_t rows(std::size_t count) { return static_cast<std::int64_t>(count); }
    static std::vector<bf16> small_integers(std::size_t elements, unsigned seed)
    {
        std::vector<bf16> matrix(elements);
        for (bf16& element : matrix) {
            seed = seed * 1664525U + 1013904223U;  // Numerical Recipes' linear congruential generator
            element = bf16(static_cast<float>(seed >> 29) - 4.0F);
        }
        return matrix;
    }

    static std::vector<int> as_integers(const std::vector<bf16>& matrix)
    {
        std::vector<int> result;
        result.reserve(matrix.size());
        for (const bf16 element : matrix) {
            result.push_back(static_cast<int>(float(element)));
        }
        return result;
    }
    static std::vector<bf16> transposed(const std::vector<bf16>& matrix, std::size_t m, std::size_t n)
    {
        std::vector<bf16> result(matrix.size());
        for (std::size_t i = 0; i < matrix.size(); ++i) {
            result[i % n * m + i / n] = matrix[i];
        }
        return result;
    }

    std::size_t m_, n_, k_;
    std::vector<bf16> host_a_, host_b_;
    DeviceBuffer<bf16> a_, b_, b_by_k_;
    DeviceBuffer<float> d_;
};

/// Lets `launch(product)` compute D, checks every element against `finish(sum, column)`, and says so.
/// @param name  of the kernel, for the output
template <class Launch, class Finish>
int multiply_and_check(const char* name, std::size_t m, std::size_t n, std::size_t k, Launch launch, Finish finish)
{
    return examples::run_example(name, [&] {
        if (Device::count() == 0 || Device::current().properties().compute_capability_major != 10) {
            std::fprintf(stderr, "%s: skipped, because there is no device of compute capability 10\n", name);
            return examples::exit_no_device;
        }
        Product product(m, n, k);
        launch(product);
        const std::size_t wrong = product.wrong(finish);
        std::printf("%s: %zux%zux%zu: %zu of %zu elements wrong\n", name, m, n, k, wrong, m * n);
        return wrong == 0 ? examples::exit_success : examples::exit_failure;
    });
}

/// The same for the plain product.
template <class Launch>
int multiply_and_check(const char* name, std::size_t m, std::size_t n, std::size_t k, Launch launch)
{
    return multiply_and_check(name, m, n, k, launch, [](float sum, std::size_t) { return sum; });
}

}  // namespace course
