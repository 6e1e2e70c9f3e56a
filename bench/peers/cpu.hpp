#pragma once

/// Rung 0: the product on the CPU, as one writes it down and as the best library does it. Both take f32.

#include <gsl/span>
#include <string>

#include "problem/problem.hpp"

namespace tessera::bench {

/// Beyond this extent the plain loop is not run (it would take minutes), and nothing is extrapolated.
inline constexpr std::int64_t plain_loop_max_extent = 1024;

/// Three nested loops over row, column and k; one thread. Compiled with -O2 whatever the rest is compiled with.
void multiply_plain_loop(const Problem& problem, gsl::span<const float> a, gsl::span<const float> b,
                         gsl::span<float> d);

/// Whether this build has OpenBLAS.
bool has_openblas() noexcept;

/// OpenBLAS's sgemm with the threads that OpenBLAS chooses. Needs has_openblas().
void multiply_openblas(const Problem& problem, gsl::span<const float> a, gsl::span<const float> b, gsl::span<float> d);

/// Its version, kernel and thread count, e.g. "OpenBLAS 0.3.21 ... Haswell, 16 threads", or "not in this build".
std::string describe_openblas();

}  // namespace tessera::bench
