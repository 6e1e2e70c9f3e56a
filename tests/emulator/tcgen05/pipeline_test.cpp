// A matrix product like those of real kernels: tensor copies into a ring of stages, MMAs that release them with
// commits, and two accumulators in turn that the epilogue releases; for single CTAs and for pairs. Right and without
// findings under every schedule.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bit>
#include <memory>

#include "reference.hpp"
#include "run_ptx.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

constexpr unsigned stages = 2, k_blocks = 5, tiles = 3, n = 64;
// Static shared memory: the address of the allocation, then mbarriers.
constexpr unsigned full = 8, empty = full + 8 * stages, result_full = empty + 8 * stages,
                   result_empty = result_full + 16;

std::string wait(const std::string& label, const std::string& barrier, const std::string& parity)
{
    return fmt::format(
        "{0}:\n    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p9, [{1}], {2};\n    @!%p9 bra {0};\n",
        label, barrier, parity);
}

/// 128 rows per CTA; `tiles` tiles of 64 columns one after the other. Warp 0 copies, warp 1 issues MMAs, warps 4-7 are
/// the epilogue.
std::string kernel(unsigned group)
{
    const unsigned b_rows = n / group, stage_bytes = 16384 + 8192;
    const std::uint64_t constant = MemoryLayout{Layout::swizzle_128, false, 16, 1024}.descriptor();
    const std::uint32_t idesc = 0x490 | (n >> 3) << 17 | (128 * group >> 4) << 24;
    const std::string cta_group = fmt::format("cta_group::{}", group);
    const std::string commit_tail = group == 1
                                        ? "mbarrier::arrive::one.shared::cluster.b64 [{}];\n"
                                        : "mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [{}], %h0;\n";
    const auto commit = [&](const std::string& barrier) {
        return "    tcgen05.commit." + cta_group + "." + fmt::format(fmt::runtime(commit_tail), barrier);
    };
    std::string mmas;
    for (unsigned step = 0; step < 4; ++step) {
        mmas += fmt::format(
            "    tcgen05.mma.{}.kind::f16 [%d], %l0, %l1, {:#x}, %p2;\n    add.u64 %l0, %l0, 2;\n    add.u64 %l1, %l1, "
            "2;\n    setp.eq.u32 %p2, 0, 0;\n",
            cta_group, idesc);
    }
    std::string stores;
    for (unsigned c = 0; c < n; ++c) {
        stores += fmt::format("    st.global.b32 [%l4+{}], %v{};\n", 4 * c, c);
    }
    std::string registers = "%v0";
    for (unsigned c = 1; c < n; ++c) {
        registers += fmt::format(", %v{}", c);
    }
    return module_text(
        "sm_100a",
        fmt::format(
            R"(
.extern .shared .align 1024 .b8 ring[];
.visible .entry kernel(.param .align 128 .b8 map_a[128], .param .align 128 .b8 map_b[128], .param .u64 result)
{{
    .shared .align 16 .b8 control[128];
    .reg .b32 %a<20>, %v<{n}>, %smem, %ctl, %taddr, %thread, %warp, %rank, %stage, %round, %parity, %tile, %block, %d, %bar;
    .reg .b64 %l<12>;
    .reg .pred %p<12>;
    .reg .b16 %h<2>;
    mov.u32 %thread, %tid.x;
    shr.u32 %warp, %thread, 5;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %smem, ring;
    mov.u32 %ctl, control;
    mov.b16 %h0, 3;
    setp.ne.u32 %p0, %thread, 0;
    @%p0 bra no_init;
{init}
    fence.mbarrier_init.release.cluster;
no_init:
    bar.sync 0;
{cluster_sync}
    setp.ne.u32 %p0, %warp, 2;
    @%p0 bra no_alloc;
    tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [control], 128;
    tcgen05.relinquish_alloc_permit.{group}.sync.aligned;
no_alloc:
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %taddr, [control];
    setp.eq.u32 %p0, %thread, 0;
    @%p0 bra producer;
    setp.eq.u32 %p0, %thread, 32;
    @%p0 bra multiplier;
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra epilogue;
    bra end;

producer:
    mov.u32 %stage, 0;
    mov.u32 %round, 0;
    mov.u32 %tile, 0;
next_tile_p:
    mov.u32 %block, 0;
next_block_p:
    xor.b32 %parity, %round, 1;
    mad.lo.u32 %bar, %stage, 8, %ctl;
{wait_empty}
    mad.lo.u32 %a0, %stage, {stage_bytes}, %smem;
    add.u32 %a1, %a0, 16384;
    add.u32 %a2, %bar, {full};
{expect}
    shl.b32 %a3, %block, 6;
    shl.b32 %a4, %rank, 7;
    mul.lo.u32 %a5, %tile, {n};
    mad.lo.u32 %a5, %rank, {b_rows}, %a5;
    mov.b64 %l0, map_a;
    mov.b64 %l1, map_b;
    cvta.param.u64 %l0, %l0;
    cvta.param.u64 %l1, %l1;
    cp.async.bulk.tensor.2d.{copy_group}shared::cluster.global.mbarrier::complete_tx::bytes [%a0], [%l0, {{%a3, %a4}}], [%a2];
    cp.async.bulk.tensor.2d.{copy_group}shared::cluster.global.mbarrier::complete_tx::bytes [%a1], [%l1, {{%a3, %a5}}], [%a2];
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p1, %stage, {stages};
    @%p1 xor.b32 %round, %round, 1;
    @%p1 mov.u32 %stage, 0;
    add.u32 %block, %block, 1;
    setp.lt.u32 %p1, %block, {k_blocks};
    @%p1 bra next_block_p;
    add.u32 %tile, %tile, 1;
    setp.lt.u32 %p1, %tile, {tiles};
    @%p1 bra next_tile_p;
    // The commits of the last rounds still have to arrive here.
    mov.u32 %block, 0;
drain:
    xor.b32 %parity, %round, 1;
    mad.lo.u32 %bar, %stage, 8, %ctl;
{wait_drained}
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p1, %stage, {stages};
    @%p1 xor.b32 %round, %round, 1;
    @%p1 mov.u32 %stage, 0;
    add.u32 %block, %block, 1;
    setp.lt.u32 %p1, %block, {stages};
    @%p1 bra drain;
    bra end;

multiplier:
    setp.ne.u32 %p0, %rank, 0;
    @%p0 bra end;
    mov.u32 %stage, 0;
    mov.u32 %round, 0;
    mov.u32 %tile, 0;
next_tile_m:
    and.b32 %a6, %tile, 1;
    mad.lo.u32 %d, %a6, {n}, %taddr;
    mad.lo.u32 %a7, %a6, 8, %ctl;
    shr.u32 %a8, %tile, 1;
    and.b32 %a8, %a8, 1;
    xor.b32 %a8, %a8, 1;
{wait_result_empty}
    tcgen05.fence::after_thread_sync;
    setp.ne.u32 %p2, 0, 0;
    mov.u32 %block, 0;
next_block_m:
    mad.lo.u32 %bar, %stage, 8, %ctl;
{wait_full}
    tcgen05.fence::after_thread_sync;
    mad.lo.u32 %a0, %stage, {stage_bytes}, %smem;
    and.b32 %a0, %a0, 0x3FFFF;
    shr.u32 %a0, %a0, 4;
    cvt.u64.u32 %l0, %a0;
    or.b64 %l0, %l0, {constant:#x};
    add.u64 %l1, %l0, 1024;
{mmas}
    add.u32 %a2, %bar, {empty};
{commit_empty}
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p1, %stage, {stages};
    @%p1 xor.b32 %round, %round, 1;
    @%p1 mov.u32 %stage, 0;
    add.u32 %block, %block, 1;
    setp.lt.u32 %p1, %block, {k_blocks};
    @%p1 bra next_block_m;
    add.u32 %a2, %a7, {result_full};
{commit_result}
    add.u32 %tile, %tile, 1;
    setp.lt.u32 %p1, %tile, {tiles};
    @%p1 bra next_tile_m;
    bra end;

epilogue:
    ld.param.u64 %l3, [result];
    sub.u32 %a0, %thread, 128;
    mad.lo.u32 %a0, %rank, 128, %a0;
    mul.wide.u32 %l5, %a0, {row_bytes};
    add.u64 %l3, %l3, %l5;
    mov.u32 %tile, 0;
next_tile_e:
    and.b32 %a6, %tile, 1;
    mad.lo.u32 %d, %a6, {n}, %taddr;
    mad.lo.u32 %a7, %a6, 8, %ctl;
    shr.u32 %a8, %tile, 1;
    and.b32 %a8, %a8, 1;
{wait_result_full}
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x{n}.b32 {{{registers}}}, [%d];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;
    add.u32 %a2, %a7, {result_empty};
{arrive}
    mul.wide.u32 %l5, %tile, {tile_bytes};
    add.u64 %l4, %l3, %l5;
{stores}
    add.u32 %tile, %tile, 1;
    setp.lt.u32 %p1, %tile, {tiles};
    @%p1 bra next_tile_e;

end:
    bar.warp.sync 0xffffffff;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
{cluster_sync}
    setp.ne.u32 %p0, %warp, 2;
    @%p0 bra done;
    tcgen05.fence::after_thread_sync;
    tcgen05.dealloc.{group}.sync.aligned.b32 %taddr, 128;
done:
    ret;
}}
)",
            fmt::arg("n", n), fmt::arg("group", cta_group), fmt::arg("stages", stages), fmt::arg("k_blocks", k_blocks),
            fmt::arg("tiles", tiles), fmt::arg("stage_bytes", stage_bytes), fmt::arg("full", full),
            fmt::arg("empty", empty), fmt::arg("result_full", result_full), fmt::arg("result_empty", result_empty),
            fmt::arg("b_rows", b_rows), fmt::arg("constant", constant), fmt::arg("mmas", mmas),
            fmt::arg("registers", registers), fmt::arg("stores", stores), fmt::arg("row_bytes", 4 * n * tiles),
            fmt::arg("tile_bytes", 4 * n),
            fmt::arg("init",
                     [&] {
                         std::string text;
                         for (unsigned i = 0; i < 2 * stages + 4; ++i) {
                             const bool by_epilogue = i >= 2 * stages + 2;
                             text += fmt::format("    mbarrier.init.shared::cta.b64 [control+{}], {};\n", full + 8 * i,
                                                 by_epilogue ? 128 * group : 1);
                         }
                         return text;
                     }()),
            fmt::arg("cluster_sync", group == 2 ? "    barrier.cluster.arrive;\n    barrier.cluster.wait;" : ""),
            fmt::arg("wait_empty", wait("we", fmt::format("%bar+{}", empty), "%parity")),
            fmt::arg("wait_drained", wait("wd", fmt::format("%bar+{}", empty), "%parity")),
            fmt::arg("wait_full", wait("wf", fmt::format("%bar+{}", full), "%round")),
            fmt::arg("wait_result_empty", wait("wre", fmt::format("%a7+{}", result_empty), "%a8")),
            fmt::arg("wait_result_full", wait("wrf", fmt::format("%a7+{}", result_full), "%a8")),
            fmt::arg("commit_empty", commit("%a2")), fmt::arg("commit_result", commit("%a2")),
            fmt::arg("copy_group", group == 2 ? "cta_group::2." : ""),
            // The even CTA expects all bytes of a pair.
            fmt::arg("expect", group == 1 ? fmt::format("    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%a2], {};",
                                                        16384 + 128 * n)
                                          : fmt::format("    setp.eq.u32 %p3, %rank, 0;\n    @%p3 "
                                                        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%a2], {};\n"
                                                        "    and.b32 %a2, %a2, 0xFEFFFFFF;",
                                                        2 * (16384 + 128 * b_rows))),
            fmt::arg("arrive", group == 1 ? "    mbarrier.arrive.shared::cta.b64 _, [%a2];"
                                          : "    mapa.shared::cluster.u32 %a2, %a2, 0;\n    "
                                            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%a2];")));
}

TensorMap matrix_map(std::uint64_t address, unsigned rows, unsigned k, unsigned box_rows)
{
    TensorMap map;
    map.element = TensorElement::bf16;
    map.rank = 2;
    map.address = address;
    map.extents[0] = k;
    map.extents[1] = rows;
    map.strides[0] = std::uint64_t{2} * k;
    map.box[0] = 64;
    map.box[1] = box_rows;
    map.swizzle = TensorSwizzle::span_128;
    return map;
}

struct Problem {
    unsigned group, rows, columns = n * tiles, k = 64 * k_blocks;
    std::vector<std::uint16_t> a, b;
    std::vector<float> expected;
    std::string text;

    explicit Problem(unsigned cta_group) : group(cta_group), rows(128 * cta_group), text(kernel(cta_group))
    {
        Random random(5);
        const auto sample = [&] { return static_cast<std::uint16_t>(bf16.sample(random)); };
        a.resize(std::size_t{rows} * k);
        b.resize(std::size_t{columns} * k);
        std::ranges::generate(a, sample);
        std::ranges::generate(b, sample);
        for (unsigned row = 0; row < rows; ++row) {
            for (unsigned column = 0; column < columns; ++column) {
                double sum = 0;
                for (unsigned depth = 0; depth < k; ++depth) {
                    sum += bf16.value(a[std::size_t{row} * k + depth]) * bf16.value(b[std::size_t{column} * k + depth]);
                }
                expected.push_back(static_cast<float>(sum));  // all sums are exact
            }
        }
    }
};

/// Findings of the kernel with one piece of its text replaced.
Report& faulty_run(const Problem& problem, const std::string& before, const std::string& after, Schedule schedule,
                   std::unique_ptr<PtxRun>& run)
{
    std::string text = problem.text;
    const std::size_t place = text.find(before);
    REQUIRE(place != std::string::npos);
    text.replace(place, before.size(), after);
    run = std::make_unique<PtxRun>(text);
    run->options.schedule = schedule;
    run->options.numerics = Numerics::fast;
    const auto map_a = encode(matrix_map(run->buffer(problem.a), problem.rows, problem.k, 128));
    const auto map_b = encode(matrix_map(run->buffer(problem.b), problem.columns, problem.k, n / problem.group));
    const std::uint64_t result = run->buffer(std::vector<float>(problem.expected.size()));
    run->launch("kernel",
                {.grid = {problem.group, 1, 1},
                 .block = {256, 1, 1},
                 .cluster = {problem.group, 1, 1},
                 .dynamic_shared = stages * 24576},
                map_a, map_b, result);
    return run->report;
}

void check(const Problem& problem, const Options& options)
{
    const unsigned group = problem.group;
    PtxRun run(problem.text);
    run.options = options;
    const auto map_a = encode(matrix_map(run.buffer(problem.a), problem.rows, problem.k, 128));
    const auto map_b = encode(matrix_map(run.buffer(problem.b), problem.columns, problem.k, n / group));
    const std::uint64_t result = run.buffer(std::vector<float>(problem.expected.size()));
    const LaunchResult launched = run.launch(
        "kernel",
        {.grid = {group, 1, 1}, .block = {256, 1, 1}, .cluster = {group, 1, 1}, .dynamic_shared = stages * 24576},
        map_a, map_b, result);
    CAPTURE(group);
    CAPTURE(static_cast<int>(options.schedule));
    CAPTURE(options.seed);
    CHECK(launched.message == "");
    for (const Finding& finding : run.report.findings()) {
        CAPTURE(finding.message);
        CHECK(name_of(finding.kind) == "none");
    }
    CHECK(run.read<float>(result, problem.expected.size()) == problem.expected);
    const std::uint64_t mmas = std::uint64_t{4} * k_blocks * tiles;
    CHECK(launched.statistics.mma_issued == mmas);
    CHECK(launched.statistics.mma_flops == 2 * std::uint64_t{problem.rows} * problem.columns * problem.k);
    CHECK(launched.statistics.mma_operand_bytes == mmas * 32 * (problem.rows + n));
}

}  // namespace

TEST_CASE("pipelined products are right and have no findings in any schedule")
{
    for (const unsigned group : {1u, 2u}) {
        const Problem problem(group);
        for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
            for (std::uint64_t seed = 1; seed <= 50; ++seed) {
                Options options;
                options.schedule = schedule;
                options.seed = seed;
                options.numerics = seed % 10 == 0 ? Numerics::exact : Numerics::fast;
                check(problem, options);
            }
        }
    }
}

TEST_CASE("planted faults in the pipeline are reported in every schedule")
{
    const std::string commit = "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%a2];\n";
    const Problem problem(1);
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        CAPTURE(static_cast<int>(schedule));
        std::unique_ptr<PtxRun> run;
        // A stage released by an ordinary arrival, immediately after the MMAs were issued.
        faulty_run(problem, commit, "    mbarrier.arrive.shared::cta.b64 _, [%a2];\n", schedule, run);
        CHECK(run->count(FindingKind::stage_overwritten) >= 1);
        // The accumulator is written again before the epilogue has released it.
        faulty_run(problem, wait("wre", fmt::format("%a7+{}", result_empty), "%a8"), "", schedule, run);
        CAPTURE(run->report.text());
        CHECK(run->count(FindingKind::accumulator_before_commit) >= 1);
        // The epilogue does not wait for the commit.
        faulty_run(problem, wait("wrf", fmt::format("%a7+{}", result_full), "%a8"), "", schedule, run);
        CAPTURE(run->report.text());
        CHECK(run->count(FindingKind::accumulator_before_commit) >= 1);
        // The MMAs do not wait for the copies.
        faulty_run(problem, wait("wf", fmt::format("%bar+{}", full), "%round"), "", schedule, run);
        CHECK(run->count(FindingKind::async_read_pending) + run->count(FindingKind::stage_overwritten) +
                  run->count(FindingKind::uninitialized_shared) >=
              1);
        // The accumulator is released before the load from it is complete.
        faulty_run(problem, "    tcgen05.wait::ld.sync.aligned;\n", "", schedule, run);
        CHECK(run->count(FindingKind::async_read_pending) + run->count(FindingKind::accumulator_before_commit) >= 1);
    }
}
