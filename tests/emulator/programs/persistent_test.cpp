// The persistent GEMM, right and with faults.

#include "persistent_gemm.cuh"

#include <doctest/doctest.h>

#include "program.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;
using namespace tessera_emulator_test;

namespace {

constexpr int m = 512;
constexpr int n = 512;
constexpr int k = 128;

TestProgram& program()
{
    static TestProgram only("persistent_gemm", "b200");
    return only;
}

Outcome launch(PersistentFault fault, int depth = k)
{
    static const std::vector<std::uint16_t> a = to_bf16(random_values(std::size_t{m} * k, 1));
    static const std::vector<std::uint16_t> b = to_bf16(random_values(std::size_t{n} * k, 2));
    const Shape shape{.grid = {m / 128, n / persistent::tile_n, 1},
                      .block = {persistent::threads, 1, 1},
                      .cluster = {2, 1, 1},
                      .dynamic_shared = persistent::shared_bytes};
    return run_with<std::uint16_t>(
        program(), a, b, std::size_t{m} * n,
        [&](PtxRun& run, std::uint64_t at_a, std::uint64_t at_b, std::uint64_t at_d) {
            return run.launch(program().kernel("persistent_gemm", "", static_cast<int>(fault)), shape,
                              bf16_map(at_a, m, k, 128, persistent::block_k),
                              bf16_map(at_b, n, k, persistent::tile_n / 2, persistent::block_k),
                              bf16_map(at_d, m, n, persistent::store_rows, persistent::store_columns), depth);
        });
}

void check(PersistentFault fault, const char* name, std::vector<FindingKind> kinds, const char* ptx = "",
           const char* source = "", unsigned within_seeds = 1, int depth = k)
{
    const PlantedFault planted{.name = name,
                               .fault = static_cast<int>(fault),
                               .kinds = std::move(kinds),
                               .places = {{ptx, source}},
                               .within_seeds = within_seeds};
    check_planted(program(), "persistent", planted, [&](const PlantedFault&) { return launch(fault, depth); });
}

}  // namespace

TEST_CASE("the persistent GEMM is right and has no findings")
{
    const Reference expected =
        reference(random_values(std::size_t{m} * k, 1), random_values(std::size_t{n} * k, 2), m, n, k, 0x1p-8);
    check_clean(program(), expected, [] { return launch(PersistentFault::none); });
}

TEST_CASE("every planted fault of the persistent GEMM is reported")
{
    using Kind = FindingKind;
    using F = PersistentFault;
    check(F::no_proxy_fence, "no proxy fence before a TMA store", {Kind::missing_proxy_fence}, "cp.async.bulk.tensor",
          "store_box(");
    // More than one seed where a CTA must get a second tile: whether it does is up to launch control.
    check(F::staging_reused_early, "staging reused before the store has read it",
          {Kind::stage_overwritten, Kind::async_read_pending}, "st.shared", "store_shared(", 20);
    check(F::accumulator_reused_early, "accumulator reused before it is stored", {Kind::accumulator_before_commit}, "",
          "", 20);
    check(F::no_wait_for_response, "answer of launch control read at once",
          {Kind::async_read_pending, Kind::uninitialized_shared, Kind::launch_control});
    check(F::response_overwritten, "answer of launch control overwritten",
          {Kind::stage_overwritten, Kind::shared_race, Kind::async_read_pending, Kind::launch_control}, "", "", 20);
    check(F::response_not_expected, "answer of launch control not expected", {Kind::transaction_count});
}
