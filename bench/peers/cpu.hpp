#pragma once

/// Products on the CPU: a plain loop and OpenBLAS. Both take f32.

#include <gsl/span>
#include <string>

#include "problem/problem.hpp"

namespace tessera::bench {

/// The plain loop is not run for larger extents, which would take minutes. Nothing is extrapolated.
inline constexpr std::int64_t plain_loop_max_extent = 1024;

/// Three nested loops over row, column and k; one thread. Always compiled with -O2.
void multiply_plain_loop(const Problem& problem, gsl::span<const float> a, gsl::span<const float> b,
                         gsl::span<float> d);

/// Returns true if this build has OpenBLAS.
bool has_openblas() noexcept;

/// OpenBLAS's sgemm with OpenBLAS's own number of threads. Needs has_openblas().
void multiply_openblas(const Problem& problem, gsl::span<const float> a, gsl::span<const float> b, gsl::span<float> d);

/// Version, kernel and thread count, e.g. "OpenBLAS 0.3.21 ... Haswell, 16 threads", or "not in this build".
std::string describe_openblas();

}  // namespace tessera::bench
