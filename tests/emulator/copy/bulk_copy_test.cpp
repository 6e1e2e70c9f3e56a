// cp.async.bulk on the machine: every route, multicast, groups, masks, typical races, and faults.

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// One thread issues the copy; all wait for phase 0 of `bar` if `wait` is given. Then thread t stores words t, t + n of
/// data to out + 4096 * rank.
std::string kernel(const std::string& issue, const std::string& wait, const std::string& before = "",
                   const std::string& after = "", unsigned arrivals = 1)
{
    return module_text("sm_90", R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .pred p, q; .reg .b16 h<4>; .reg .b32 r<20>; .reg .b64 d<12>;
    .shared .align 128 .b8 data[1024];
    .shared .align 128 .b8 more[1024];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [in];
    ld.param.u64 d1, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mov.u32 r2, bar;
    mov.u32 r3, %cluster_ctarank;
    mov.u32 r15, more;
    mad.lo.u32 r4, r0, 4, r1;
    mul.wide.u32 d2, r3, 4096;
    add.u64 d1, d1, d2;
    setp.eq.u32 q, r0, 0;
    @q mbarrier.init.shared::cta.b64 [bar], )" +
                                    std::to_string(arrivals) + R"(;
    @q fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    )" + before + R"(
    @!q bra issued;
    )" + issue + R"(
issued:
    )" + wait + R"(
    ld.shared.u32 r5, [r4];
    ld.shared.u32 r6, [r4+512];
    mul.wide.u32 d3, r0, 4;
    add.u64 d3, d1, d3;
    st.global.u32 [d3], r5;
    st.global.u32 [d3+512], r6;
    )" + after + R"(
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
}
)");
}

const std::string wait_full = "again: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra again;";
const std::string expect = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024; ";
const std::string load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d0], 1024, [r2]; ";

std::uint32_t input_at(std::size_t i) { return static_cast<std::uint32_t>(i * 2654435761U + 3); }

struct Outcome {
    LaunchResult result;
    std::vector<std::uint32_t> values;
};

Outcome launch(PtxRun& run, std::uint32_t cluster = 1)
{
    std::vector<std::uint32_t> input(2048);
    for (std::size_t i = 0; i < input.size(); ++i) {
        input[i] = input_at(i);
    }
    const std::uint64_t in = run.buffer(input);
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(1024 * cluster));
    Outcome outcome;
    outcome.result =
        run.launch("k", {.grid = {cluster, 1, 1}, .block = {128, 1, 1}, .cluster = {cluster, 1, 1}}, in, out);
    outcome.values = run.read<std::uint32_t>(out, 1024 * cluster);
    return outcome;
}

void check_loaded(const Outcome& outcome, std::uint32_t cluster = 1)
{
    for (std::size_t rank = 0; rank < cluster; ++rank) {
        for (std::size_t i = 0; i < 256; ++i) {
            REQUIRE(outcome.values[1024 * rank + i] == input_at(i));
        }
    }
}

}  // namespace

TEST_CASE("a load in every form arrives with its bytes counted")
{
    for (const std::string& form :
         {load, std::string("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [r1], [d0], 1024, [r2]; "),
          std::string("mov.u64 d5, 0; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                      "[r1], [d0], 1024, "
                      "[r2], d5; "),
          std::string(
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d0], 512, [r2]; "
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1+512], [d0+512], 512, [r2]; ")}) {
        CAPTURE(form);
        under_every_schedule(
            kernel(expect + form, wait_full), "h200",
            [](PtxRun& run) {
                const Outcome outcome = launch(run);
                REQUIRE_CLEAN(run, outcome.result);
                check_loaded(outcome);
            },
            5);
    }
    // The copy first, the expectation after it: correct, because its arrival is still missing.
    under_every_schedule(
        kernel(load + expect, wait_full), "h200",
        [](PtxRun& run) {
            const Outcome outcome = launch(run);
            REQUIRE_CLEAN(run, outcome.result);
            check_loaded(outcome);
        },
        5);
}

TEST_CASE("a read without a wait is reported in every schedule")
{
    under_every_schedule(
        kernel(expect + load, "bar.sync 0;"), "h200",
        [](PtxRun& run) {
            launch(run);
            INFO(findings_text(run));
            CHECK(run.count(FindingKind::async_read_pending) + run.count(FindingKind::shared_race) > 0);
        },
        5);
}

TEST_CASE("a wait for the wrong parity passes at once and is reported")
{
    under_every_schedule(
        kernel(expect + load, "again: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 1; @!p bra again;"), "h200",
        [](PtxRun& run) {
            launch(run);
            INFO(findings_text(run));
            CHECK(run.count(FindingKind::async_read_pending) + run.count(FindingKind::shared_race) +
                      run.count(FindingKind::uninitialized_shared) + run.count(FindingKind::stage_overwritten) >
                  0);
        },
        5);
}

TEST_CASE("a missing expect_tx is reported")
{
    under_every_schedule(
        kernel("mbarrier.arrive.shared::cta.b64 _, [bar]; " + load, wait_full), "h200",
        [](PtxRun& run) {
            launch(run);
            INFO(findings_text(run));
            CHECK(run.count(FindingKind::async_read_pending) + run.count(FindingKind::shared_race) > 0);
        },
        5);
    // The copy is in flight when the phase completes without it.
    PtxRun run(kernel(load + "mbarrier.arrive.shared::cta.b64 _, [bar]; ", wait_full), "h200");
    launch(run);
    CHECK_FOUND(run, FindingKind::transaction_count);
}

TEST_CASE("a wrong byte count of expect_tx is reported: too many bytes as a deadlock, too few as a finding")
{
    PtxRun many(kernel("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1040; " + load, wait_full), "h200");
    const Outcome outcome = launch(many);
    CHECK(outcome.result.code == 702);
    CHECK(outcome.result.message.find("16 expected bytes have not arrived") != std::string::npos);
    under_every_schedule(
        kernel("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512; "
               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d0], 512, [r2]; "
               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1+512], [d0+512], 512, [r2]; ",
               wait_full),
        "h200",
        [](PtxRun& run) {
            launch(run);
            CHECK_FOUND(run, FindingKind::transaction_count);
        },
        5);
}

TEST_CASE("multicast writes to the same place of every CTA in the mask and signals each CTA's barrier")
{
    const std::string issue = R"(
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
    setp.ne.u32 p, r3, 2;
    @p bra issued;
    mov.u16 h1, 0xF;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [r1], [d0], 1024, [r2], h1;
)";
    under_every_schedule(
        kernel(issue, wait_full), "h200",
        [](PtxRun& run) {
            const Outcome outcome = launch(run, 4);
            REQUIRE_CLEAN(run, outcome.result);
            check_loaded(outcome, 4);
        },
        6);
}

TEST_CASE("an empty mask, or one with CTAs beyond the cluster, is reported")
{
    for (const char* mask : {"0x7", "0"}) {
        const std::string issue =
            std::string(
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024; setp.ne.u32 p, r3, 0; @p bra "
                "issued; mov.u16 h1, ") +
            mask +
            "; cp.async.bulk.shared::cluster.global."
            "mbarrier::complete_tx::bytes.multicast::cluster [r1], [d0], 1024, [r2], h1;";
        PtxRun run(kernel(issue, wait_full), "h200");
        launch(run, 2);
        CHECK_FOUND(run, FindingKind::cta_mask);
    }
}

TEST_CASE("a multicast signals the mbarriers of its receivers; one that names another CTA's is reported")
{
    const auto program = [](const std::string& barrier) {
        return kernel(expect + "setp.eq.u32 p, r3, 0; @p bra issued; mov.u16 h1, 3; " + barrier +
                          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [r1], "
                          "[d0], 1024, [r7], h1;",
                      wait_full);
    };
    under_every_schedule(
        program("mov.u32 r7, r2; "), "b200", [](PtxRun& run) { REQUIRE_CLEAN(run, launch(run, 2).result); }, 4);
    under_every_schedule(
        program("and.b32 r7, r2, 0xFEFFFFFF; "), "b200",
        [](PtxRun& run) {
            launch(run, 2);
            CHECK_FOUND(run, FindingKind::cta_group);
            CHECK(run.report.text().find("the copy needs .cta_group::2") != std::string::npos);
        },
        4);
}

TEST_CASE(
    "a multicast before the receiver has initialized its barrier is reported, even if it happens to be late enough")
{
    const std::string ptx = module_text("sm_90", R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .pred p, q; .reg .b16 h<2>; .reg .b32 r<8>; .reg .b64 d<4>;
    .shared .align 128 .b8 data[1024];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [in];
    mov.u32 r1, data;
    mov.u32 r2, bar;
    mov.u32 r3, %cluster_ctarank;
    mbarrier.init.shared::cta.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
    setp.eq.u32 q, r3, 0;
    mov.u16 h1, 3;
    @q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [r1], [d0], 1024, [r2], h1;
again:
    mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
    @!p bra again;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
}
)");
    under_every_schedule(
        ptx, "h200",
        [](PtxRun& run) {
            const std::uint64_t in = run.buffer(std::vector<std::uint32_t>(256));
            run.launch("k", {.grid = {2, 1, 1}, .block = {1, 1, 1}, .cluster = {2, 1, 1}}, in, in);
            INFO(findings_text(run));
            CHECK(run.count(FindingKind::barrier_misuse) + run.count(FindingKind::cluster_protocol) > 0);
        },
        6);
}

TEST_CASE("a CTA that exits while a peer's multicast is in flight is reported")
{
    const std::string ptx = module_text("sm_90", R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .pred p, q; .reg .b16 h<2>; .reg .b32 r<8>; .reg .b64 d<4>;
    .shared .align 128 .b8 data[1024];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [in];
    mov.u32 r1, data;
    mov.u32 r2, bar;
    mov.u32 r3, %cluster_ctarank;
    mbarrier.init.shared::cta.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    setp.ne.u32 q, r3, 0;
    @q ret;
    mov.u16 h1, 3;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [r1], [d0], 1024, [r2], h1;
again:
    mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
    @!p bra again;
    ret;
}
)");
    under_every_schedule(
        ptx, "h200",
        [&](PtxRun& run) {
            const std::uint64_t in = run.buffer(std::vector<std::uint32_t>(256));
            run.launch("k", {.grid = {2, 1, 1}, .block = {1, 1, 1}, .cluster = {2, 1, 1}}, in, in);
            CHECK_FOUND(run, FindingKind::cluster_protocol);
        },
        6);
}

TEST_CASE("shared memory is copied to the shared memory of a peer")
{
    // CTA r sends its data, filled with r * 1000 + i, to `data` of CTA 1 - r.
    const std::string before = R"(
    mad.lo.u32 r7, r3, 1000, r0;
    mad.lo.u32 r8, r0, 4, r15;
    st.shared.u32 [r8], r7;
    add.u32 r7, r7, 128;
    st.shared.u32 [r8+512], r7;
    fence.proxy.async.shared::cta;
    bar.sync 0;
)";
    const std::string issue = R"(
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
    xor.b32 r9, r3, 1;
    mapa.shared::cluster.u32 r10, r1, r9;
    mapa.shared::cluster.u32 r11, r2, r9;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [r10], [r15], 1024, [r11];
)";
    under_every_schedule(
        kernel(issue, wait_full, before), "h200",
        [](PtxRun& run) {
            const Outcome outcome = launch(run, 2);
            REQUIRE_CLEAN(run, outcome.result);
            for (std::uint32_t rank = 0; rank < 2; ++rank) {
                for (std::uint32_t i = 0; i < 256; ++i) {
                    REQUIRE(outcome.values[1024 * rank + i] == (1 - rank) * 1000 + i);
                }
            }
        },
        6);
    // Without the proxy fence.
    std::string unfenced = before;
    unfenced.erase(unfenced.find("    fence.proxy"), std::string("    fence.proxy.async.shared::cta;\n").size());
    PtxRun run(kernel(issue, wait_full, unfenced), "h200");
    launch(run, 2);
    CHECK_FOUND(run, FindingKind::missing_proxy_fence);
}

namespace {

/// Fills data with t and t + 128, and stores it to `out` in bulk. Thread 0 then executes `tail`.
std::string store_kernel(const std::string& fence, const std::string& store, const std::string& tail)
{
    return module_text("sm_100", R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .pred p, q; .reg .b16 h<4>; .reg .b32 r<20>; .reg .b64 d<12>;
    .shared .align 128 .b8 data[1024];
    ld.param.u64 d1, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mad.lo.u32 r4, r0, 4, r1;
    add.u32 r5, r0, 128;
    st.shared.u32 [r4], r0;
    st.shared.u32 [r4+512], r5;
    )" + fence + R"(
    bar.sync 0;
    setp.ne.u32 q, r0, 0;
    @q bra end;
    )" + store + R"(
    cp.async.bulk.commit_group;
    )" + tail + R"(
end:
    ret;
}
)");
}

const std::string store = "cp.async.bulk.global.shared::cta.bulk_group [d1], [r1], 1024;";
const std::string fence = "fence.proxy.async.shared::cta;";

}  // namespace

TEST_CASE("stores have written when their group is complete")
{
    const std::string check = R"(
    cp.async.bulk.wait_group 0;
    ld.global.u32 r6, [d1+400];
    st.global.u32 [d1+1024], r6;
)";
    under_every_schedule(
        store_kernel(fence, store, check), "b200",
        [](PtxRun& run) {
            const Outcome outcome = launch(run);
            REQUIRE_CLEAN(run, outcome.result);
            for (std::uint32_t i = 0; i < 256; ++i) {
                REQUIRE(outcome.values[i] == i);
            }
            CHECK(outcome.values[256] == 100);
        },
        5);
}

TEST_CASE("a byte mask leaves other bytes unchanged")
{
    under_every_schedule(
        store_kernel(fence,
                     "mov.u16 h1, 0x00F3; cp.async.bulk.global.shared::cta.bulk_group.cp_mask [d1], [r1], 1024, h1;",
                     "cp.async.bulk.wait_group 0;"),
        "b200",
        [](PtxRun& run) {
            const Outcome outcome = launch(run);
            REQUIRE_CLEAN(run, outcome.result);
            for (std::uint32_t i = 0; i < 256; ++i) {
                const std::uint32_t expected = i % 4 == 0 ? i & 0xFFFFU : i % 4 == 1 ? i : 0;
                REQUIRE(outcome.values[i] == expected);
            }
        },
        3);
}

TEST_CASE("the source may be overwritten after wait_group.read, and only then")
{
    const std::string overwrite = "st.shared.u32 [data+8], r1;";
    under_every_schedule(
        store_kernel(fence, store, "cp.async.bulk.wait_group.read 0;" + overwrite), "b200",
        [](PtxRun& run) {
            const Outcome outcome = launch(run);
            REQUIRE_CLEAN(run, outcome.result);
            CHECK(outcome.values[2] == 2);
        },
        6);
    under_every_schedule(
        store_kernel(fence, store, overwrite + "cp.async.bulk.wait_group.read 0;"), "b200",
        [](PtxRun& run) {
            launch(run);
            INFO(findings_text(run));
            CHECK(run.count(FindingKind::stage_overwritten) + run.count(FindingKind::shared_race) > 0);
        },
        6);
}

TEST_CASE("a store without the writers' proxy fence, or with only the issuer's, is reported")
{
    under_every_schedule(
        store_kernel("", store, "cp.async.bulk.wait_group 0;"), "b200",
        [](PtxRun& run) {
            launch(run);
            CHECK_FOUND(run, FindingKind::missing_proxy_fence);
        },
        3);
    under_every_schedule(
        store_kernel("", fence + store, "cp.async.bulk.wait_group 0;"), "b200",
        [](PtxRun& run) {
            launch(run);
            CHECK_FOUND(run, FindingKind::missing_proxy_fence);
        },
        3);
}

TEST_CASE("a CTA that exits before its store's source is read is reported only with --also")
{
    for (const bool asked : {false, true}) {
        unsigned found = 0;
        under_every_schedule(store_kernel(fence, store, ""), "b200", [&](PtxRun& run) {
            run.options.exits_before_read = asked;
            const auto launched = launch(run);
            CHECK(launched.result.code == 0);
            found += run.count(FindingKind::exit_before_read) > 0 ? 1 : 0;
            for (const Finding& finding : run.report.findings()) {
                CHECK(finding.kind == FindingKind::exit_before_read);
            }
        });
        CHECK((found > 0) == asked);
    }
}

TEST_CASE("misaligned addresses, sizes, and addresses outside of memory fault")
{
    const auto run_with = [](const std::string& issue, int code, FindingKind kind) {
        CAPTURE(issue);
        PtxRun run(kernel(expect + issue, wait_full), "h200");
        CHECK(launch(run).result.code == code);
        CHECK_FOUND(run, kind);
    };
    run_with("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1+8], [d0], 512, [r2]; ", 716,
             FindingKind::misaligned);
    run_with("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d0+8], 512, [r2]; ", 716,
             FindingKind::misaligned);
    run_with("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d0], 520, [r2]; ", 716,
             FindingKind::misaligned);
    run_with("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1+1536], [d0], 1024, [r2]; ", 700,
             FindingKind::out_of_bounds);
    run_with("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d0+7680], 1024, [r2]; ", 700,
             FindingKind::out_of_bounds);
    run_with(
        "add.u32 r7, r2, 4; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d0], 1024, [r7]; ",
        716, FindingKind::misaligned);
}

TEST_CASE("invalid forms are refused when the module is loaded")
{
    for (const char* wrong :
         {"cp.async.bulk.shared::cluster.global.bulk_group [r1], [d0], 1024;",
          "cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes [d0], [r1], 1024, [r2];",
          "cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes [r1], [r1], 1024, [r2];",
          "cp.async.bulk.global.global.bulk_group [d0], [d1], 1024;",
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [r1], [d0], 1024, "
          "[r2];",
          "cp.async.bulk.wait_group;"}) {
        CAPTURE(wrong);
        const PtxRun run(kernel(wrong, ""), "h200");
        CHECK_FALSE(run.module().find_kernel("k")->load_error.empty());
    }
}

TEST_CASE("a prefetch does nothing")
{
    PtxRun run(kernel("cp.async.bulk.prefetch.L2.global [d0], 1024; prefetch.global.L2 [d0]; prefetch.L1 [d0]; "
                      "prefetchu.L1 [d0]; " +
                          expect + load,
                      wait_full),
               "h200");
    const Outcome outcome = launch(run);
    REQUIRE_CLEAN(run, outcome.result);
    check_loaded(outcome);
}
