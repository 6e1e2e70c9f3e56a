// The Blackwell GEMM, right and with faults.

#include "blackwell_gemm.cuh"

#include <doctest/doctest.h>

#include "program.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;
using namespace tessera_emulator_test;

namespace {

constexpr int m = 256;
constexpr int n = 256;
constexpr int usual_k = 384;  // more steps than stages

TestProgram& program()
{
    static TestProgram only("blackwell_gemm");
    return only;
}

Outcome launch(int group, BlackwellFault fault, int k = usual_k)
{
    static const std::vector<std::uint16_t> a = to_bf16(random_values(std::size_t{m} * usual_k, 1));
    static const std::vector<std::uint16_t> b = to_bf16(random_values(std::size_t{n} * usual_k, 2));
    const Shape shape{.grid = {m / rows_per_cta, static_cast<unsigned>(n / (128 * group)), 1},
                      .block = {threads, 1, 1},
                      .cluster = {static_cast<unsigned>(group), 1, 1},
                      .dynamic_shared = shared_bytes};
    return run_with<std::uint16_t>(
        program(), a, b, std::size_t{m} * n,
        [&](PtxRun& run, std::uint64_t at_a, std::uint64_t at_b, std::uint64_t at_d) {
            return run.launch(program().kernel("blackwell_gemm", std::to_string(group) + ",", static_cast<int>(fault)),
                              shape, bf16_map(at_a, m, usual_k, rows_per_cta, block_k),
                              bf16_map(at_b, n, usual_k, rows_per_cta, block_k), at_d, n, k);
        });
}

void check(int group, BlackwellFault fault, const char* name, std::vector<FindingKind> kinds, const char* ptx = "",
           const char* source = "", int k = usual_k, std::vector<FaultPlace> places = {})
{
    places.push_back({ptx, source});
    const PlantedFault planted{
        .name = name, .fault = static_cast<int>(fault), .kinds = std::move(kinds), .places = std::move(places)};
    check_planted(program(), group == 1 ? "blackwell" : "blackwell pair", planted,
                  [&](const PlantedFault&) { return launch(group, fault, k); });
}

}  // namespace

TEST_CASE("the Blackwell GEMM is right and has no findings")
{
    const Reference expected = reference(random_values(std::size_t{m} * usual_k, 1),
                                         random_values(std::size_t{n} * usual_k, 2), m, n, usual_k, 0x1p-8);
    for (const int group : {1, 2}) {
        CAPTURE(group);
        check_clean(program(), expected, [&] { return launch(group, BlackwellFault::none); });
        check_clean(program(), expected, [&] { return launch(group, BlackwellFault::stage_within_pattern); });
    }
    const Outcome empty = launch(2, BlackwellFault::none, 0);
    check_clean_outcome(empty, {std::vector<double>(std::size_t{m} * n), std::vector<double>(std::size_t{m} * n)});
}

TEST_CASE("every planted fault of the Blackwell GEMM is reported")
{
    using Kind = FindingKind;
    using F = BlackwellFault;
    for (const int group : {1, 2}) {
        check(group, F::wrong_parity, "wrong parity",
              {Kind::stage_overwritten, Kind::async_read_pending, Kind::uninitialized_shared, Kind::deadlock});
        check(group, F::missing_expect, "missing expect_tx", {Kind::transaction_count});
        check(group, F::too_many_bytes, "expects too many bytes", {Kind::transaction_count}, "mbarrier.try_wait",
              "barrier_wait(full(s)");
        check(group, F::too_few_bytes, "expects too few bytes", {Kind::transaction_count});
        check(group, F::stage_reused_early, "stage reused before its MMA is done",
              {Kind::stage_overwritten, Kind::async_read_pending});
        check(group, F::accumulator_before_commit, "accumulator read before commit", {Kind::accumulator_before_commit},
              "tcgen05.ld", "load_columns<", usual_k, {{"tcgen05.mma", "multiply<group>("}});  // or the MMA came later
        check(group, F::tensor_memory_leak, "tensor memory leaked", {Kind::tmem_leak});
        check(group, F::read_after_release, "tensor memory used after release", {Kind::tmem_after_release},
              "tcgen05.ld", "load_columns<true>");
        check(group, F::allocate_after_relinquish, "allocation after relinquish", {Kind::tmem_allocation},
              "tcgen05.alloc", "allocate<group>(address_slot + 4, 32)");
        check(group, F::no_arrival_on_zero_trips, "no arrival on zero trips", {Kind::deadlock}, "mbarrier.try_wait",
              "barrier_wait(done, 0)", 0);
        check(group, F::barrier_memory_reused, "barrier memory reused", {Kind::barrier_misuse}, "st.shared.b64",
              "st.shared.b64");
        check(group, F::barrier_initialized_twice, "barrier initialized twice", {Kind::barrier_misuse}, "mbarrier.init",
              "barrier_init(done, 1)");
        check(group, F::misaligned_stage, "misaligned stage", {Kind::misaligned}, "cp.async.bulk.tensor",
              "load_box<group>(stage");
        check(group, F::hopper_descriptor, "Hopper's matrix descriptor", {Kind::invalid_descriptor}, "tcgen05.mma",
              "multiply<group>(");
        check(group, F::wrong_instruction_shape, "wrong instruction descriptor", {Kind::invalid_descriptor},
              "tcgen05.mma", "multiply<group>(");
        check(group, F::first_step_accumulates, "first step accumulates", {Kind::uninitialized_tmem}, "tcgen05.mma",
              "multiply<group>(");
        check(group, F::foreign_lanes, "foreign lanes", {Kind::tmem_lanes}, "tcgen05.ld", "load_columns<");
        check(group, F::no_wait_for_load, "no wait for the load", {Kind::async_read_pending});
        check(group, F::barrier_not_initialized, "barrier not initialized", {Kind::barrier_misuse}, "mbarrier.try_wait",
              "barrier_wait(empty(s)");
        check(group, F::lanes_diverge_at_alloc, "divergent .aligned instruction", {Kind::divergent_aligned},
              "tcgen05.alloc", "allocate<group>(address_slot");
    }
    check(1, F::allocated_by_two, "tensor memory allocated by two", {Kind::tmem_allocation}, "tcgen05.alloc",
          "allocate<group>(address_slot");
    check(2, F::commit_to_one, "commit reaches one CTA of two", {Kind::deadlock, Kind::cta_mask});
    check(2, F::mask_beyond_cluster, "commit to CTAs that do not exist", {Kind::cta_mask}, "tcgen05.commit",
          "commit<group>(");
    check(2, F::commit_of_other_group, "commit in the other CTA group", {Kind::cta_group}, "tcgen05.commit",
          "commit<1>(");
    check(2, F::allocate_before_cluster_sync, "pair allocation before the cluster sync", {Kind::cluster_protocol},
          "tcgen05.alloc", "allocate<group>(address_slot");
    check(2, F::release_before_peer_allocates, "release before the peer has allocated",
          {Kind::tmem_allocation, Kind::cluster_protocol}, "tcgen05.dealloc", "deallocate<group>(");
    check(2, F::peer_leaves_early, "peer leaves early", {Kind::cluster_protocol});
}
