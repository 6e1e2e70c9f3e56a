// The kernels without asynchronous tensor copies, right and with faults: sm_75 on the emulated T4, sm_80 on the H200.

#include <doctest/doctest.h>

#include "program.hpp"
#include "simt_gemm.cuh"

using namespace tessera::emulator;
using namespace tessera::emulator::test;
using namespace tessera_emulator_test;

namespace {

constexpr int m = 48;
constexpr int n = 64;
constexpr int k = 80;

TestProgram& simt()
{
    static TestProgram only("simt_gemm", "t4");
    return only;
}

TestProgram& ampere()
{
    static TestProgram only("ampere_gemm", "h200");
    return only;
}

const std::vector<double>& a_values()
{
    static const std::vector<double> values = random_values(std::size_t{m} * k, 1);
    return values;
}
const std::vector<double>& b_values()
{
    static const std::vector<double> values = random_values(std::size_t{n} * k, 2);
    return values;
}

template <typename T, typename... More>
Outcome launch(TestProgram& program, const std::string& kernel, const Shape& shape, const std::vector<T>& a,
               const std::vector<T>& b, const More&... more)
{
    return run_with<float>(program, a, b, std::size_t{m} * n,
                           [&](PtxRun& run, std::uint64_t at_a, std::uint64_t at_b, std::uint64_t at_d) {
                               return run.launch(kernel, shape, at_a, at_b, at_d, more...);
                           });
}

Outcome launch(SimtFault fault)
{
    const Shape shape{.grid = {n / simt_tile, m / simt_tile, 1},
                      .block = {simt_tile, simt_tile, 1},
                      .dynamic_shared = 2 * simt_tile * simt_tile * 4};
    return launch(simt(), simt().kernel("simt_gemm", "", static_cast<int>(fault)), shape,
                  std::vector<float>(a_values().begin(), a_values().end()),
                  std::vector<float>(b_values().begin(), b_values().end()), m, n, k);
}

Outcome launch(AmpereFault fault)
{
    const Shape shape{.grid = {n / 16, m / 16, 1}, .block = {64, 1, 1}};
    return launch(ampere(), ampere().kernel("ampere_gemm", "", static_cast<int>(fault)), shape, to_bf16(a_values()),
                  to_bf16(b_values()), n, k);
}

template <typename Fault>
void check(Fault fault, const char* name, FindingKind kind, const char* ptx, const char* source, unsigned seeds = 1)
{
    const bool is_simt = std::is_same_v<Fault, SimtFault>;
    const PlantedFault planted{.name = name,
                               .fault = static_cast<int>(fault),
                               .kinds = {kind},
                               .places = {{ptx, source}},
                               .within_seeds = seeds};
    check_planted(is_simt ? simt() : ampere(), is_simt ? "simt" : "ampere", planted,
                  [&](const PlantedFault&) { return launch(fault); });
}

}  // namespace

TEST_CASE("the SIMT GEMM is right and has no findings")
{
    const Reference expected = reference(a_values(), b_values(), m, n, k, 0);
    check_clean(simt(), expected, [] { return launch(SimtFault::none); });
    check_clean(ampere(), expected, [] { return launch(AmpereFault::none); });
}

TEST_CASE("every planted fault of the SIMT GEMM is reported")
{
    using Kind = FindingKind;
    using F = SimtFault;
    check(F::no_barrier_before_use, "no barrier before use", Kind::shared_race, ".shared", "tile[");
    check(F::no_barrier_before_reuse, "no barrier before reuse", Kind::shared_race, ".shared", "tile[");
    check(F::global_out_of_bounds, "global memory out of bounds", Kind::out_of_bounds, "ld.global",
          "FAULT global_out_of_bounds");
    check(F::shared_out_of_bounds, "shared memory out of bounds", Kind::out_of_bounds, "ld.shared", "FAULT shared");
    check(F::uninitialized_global, "uninitialized global memory", Kind::uninitialized_global, "ld.global",
          "FAULT uninitialized_global");
    check(F::uninitialized_shared, "uninitialized shared memory", Kind::uninitialized_shared, "ld.shared",
          "FAULT shared");
    check(F::divergent_barrier, "divergent barrier", Kind::divergent_aligned, "bar.sync", "bar.sync");
    check(F::deadlock, "deadlock", Kind::deadlock, "bar", "FAULT deadlock");
    check(F::misaligned_vector, "misaligned vector", Kind::misaligned, "ld.shared", "FAULT misaligned_vector");
}

TEST_CASE("every planted fault of the GEMM with cp.async is reported")
{
    using Kind = FindingKind;
    using F = AmpereFault;
    check(F::no_wait, "no wait for cp.async", Kind::async_read_pending, "ldmatrix", "_stages[s][");
    check(F::no_barrier, "no barrier after the wait", Kind::async_read_pending, "ldmatrix", "_stages[s][");
    check(F::overwrites, "stage overwritten", Kind::shared_race, "cp.async", "cp.async");
}
