#include "peers/cpu.hpp"

#ifdef TESSERA_BENCH_HAS_OPENBLAS

#include <cblas.h>
#include <fmt/format.h>

namespace tessera::bench {

bool has_openblas() noexcept { return true; }

void multiply_openblas(const Problem& problem, gsl::span<const float> a, gsl::span<const float> b, gsl::span<float> d)
{
    // Extents are at most max_extent.
    const auto narrow = [](std::int64_t extent) { return static_cast<blasint>(extent); };
    const auto [m, n, k] = problem.shape;
    const bool a_rows = problem.orders.a_row_major;
    const bool b_rows = problem.orders.b_row_major;
    cblas_sgemm(CblasRowMajor, a_rows ? CblasNoTrans : CblasTrans, b_rows ? CblasNoTrans : CblasTrans, narrow(m),
                narrow(n), narrow(k), 1.0F, a.data(), narrow(a_rows ? k : m), b.data(), narrow(b_rows ? n : k), 0.0F,
                d.data(), narrow(n));
}

std::string describe_openblas()
{
    return fmt::format("{}, {} threads", openblas_get_config(), openblas_get_num_threads());
}

}  // namespace tessera::bench

#else

#include <stdexcept>

namespace tessera::bench {

bool has_openblas() noexcept { return false; }

void multiply_openblas(const Problem&, gsl::span<const float>, gsl::span<const float>, gsl::span<float>)
{
    throw std::logic_error("this build has no OpenBLAS");
}

std::string describe_openblas() { return "not in this build"; }

}  // namespace tessera::bench

#endif
