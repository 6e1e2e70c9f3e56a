// The Hopper GEMM, right and with faults.

#include "hopper_gemm.cuh"

#include <doctest/doctest.h>

#include "program.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;
using namespace tessera_emulator_test;

namespace {

constexpr int m = 256;
constexpr int n = 128;
constexpr int k = 256;  // more steps than stages

TestProgram& program()
{
    static TestProgram only("hopper_gemm", "h200");
    return only;
}

Outcome launch(HopperFault fault, int depth = k)
{
    static const std::vector<std::uint16_t> a = to_bf16(random_values(std::size_t{m} * k, 1));
    static const std::vector<std::uint16_t> b = to_bf16(random_values(std::size_t{n} * k, 2));
    const Shape shape{.grid = {m / hopper::tile_m, n / hopper::tile_n, 1},
                      .block = {hopper::threads, 1, 1},
                      .cluster = {2, 1, 1},
                      .dynamic_shared = hopper::shared_bytes};
    return run_with<std::uint16_t>(program(), a, b, std::size_t{m} * n,
                                   [&](PtxRun& run, std::uint64_t at_a, std::uint64_t at_b, std::uint64_t at_d) {
                                       return run.launch(program().kernel("hopper_gemm", "", static_cast<int>(fault)),
                                                         shape, bf16_map(at_a, m, k, hopper::tile_m, hopper::block_k),
                                                         bf16_map(at_b, n, k, hopper::tile_n / 2, hopper::block_k),
                                                         at_d, n, depth);
                                   });
}

void check(HopperFault fault, const char* name, std::vector<FindingKind> kinds, const char* ptx = "",
           const char* source = "", unsigned within_seeds = 1, int depth = k)
{
    const PlantedFault planted{.name = name,
                               .fault = static_cast<int>(fault),
                               .kinds = std::move(kinds),
                               .places = {{ptx, source}},
                               .within_seeds = within_seeds};
    check_planted(program(), "hopper", planted, [&](const PlantedFault&) { return launch(fault, depth); });
}

}  // namespace

TEST_CASE("the Hopper GEMM is right and has no findings")
{
    const Reference expected =
        reference(random_values(std::size_t{m} * k, 1), random_values(std::size_t{n} * k, 2), m, n, k, 0x1p-8);
    check_clean(program(), expected, [] { return launch(HopperFault::none); });
}

TEST_CASE("every planted fault of the Hopper GEMM is reported")
{
    using Kind = FindingKind;
    using F = HopperFault;
    check(F::multicast_before_init, "multicast before the receiver initialized its barrier",
          {Kind::cluster_protocol, Kind::barrier_misuse}, "", "", 20);
    check(F::multicast_before_arming, "multicast to a barrier that was not armed with bytes",
          {Kind::transaction_count});
    check(F::mask_beyond_cluster, "multicast to CTAs that do not exist", {Kind::cta_mask}, "multicast::cluster",
          "load_box_multicast(");
    check(F::mask_of_one, "multicast does not reach the peer", {Kind::transaction_count}, "mbarrier.try_wait",
          "barrier_wait(full(s)");
    check(F::exit_during_multicast, "exit while the peer's multicast is in flight", {Kind::cluster_protocol},
          "multicast::cluster", "load_box_multicast(", 20, hopper::stages * hopper::block_k);
    check(F::no_last_barrier, "exit before the peer's last arrivals", {Kind::cluster_protocol}, "mbarrier.arrive",
          "barrier_arrive_cluster(", 20);
    check(F::peer_not_asked, "multicast into a stage that the peer still reads",
          {Kind::stage_overwritten, Kind::async_read_pending, Kind::transaction_count}, "", "", 20);
    check(F::no_wgmma_fence, "no wgmma.fence", {Kind::async_read_pending, Kind::invalid_operand}, "wgmma", "");
    check(F::no_wgmma_wait, "no wgmma.wait_group", {Kind::async_read_pending});
    check(F::released_early, "stage released while wgmma reads it", {Kind::stage_overwritten, Kind::async_read_pending},
          "", "", 20);
    check(F::blackwell_descriptor, "Blackwell's matrix descriptor", {Kind::invalid_descriptor}, "wgmma",
          "wgmma_64x64x16(sums");
}
