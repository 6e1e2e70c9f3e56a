// mbarrier instructions on the machine: arrivals, waits, transactions, remote arrivals, and what is reported.

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// A kernel with 8 barriers `bar` and 1 KiB `data` in shared memory. Thread 0 initializes with `init`, all synchronize,
/// then execute `body`.
std::string kernel(const std::string& init, const std::string& body, const std::string& target = "sm_90")
{
    return module_text(target, R"(
.visible .entry k(.param .u64 out)
{
    .reg .pred p, q, leader; .reg .b32 r<16>; .reg .b64 d<8>;
    .shared .align 8 .b64 bar[8];
    .shared .align 16 .b8 data[1024];
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mad.lo.u32 r2, r0, 4, r1;
    mul.wide.u32 d1, r0, 8;
    add.u64 d1, d0, d1;
    setp.eq.u32 leader, r0, 0;
    @!leader bra initialized;
    )" + init + R"(
initialized:
    bar.sync 0;
    )" + body + R"(
    ret;
}
)");
}

struct Outcome {
    LaunchResult result;
    std::vector<std::uint64_t> values;
};

Outcome launch(PtxRun& run, std::uint32_t threads, std::uint32_t cluster = 1)
{
    const std::uint64_t out = run.buffer(std::vector<std::uint64_t>(threads));
    Outcome outcome;
    outcome.result =
        run.launch("k", {.grid = {cluster, 1, 1}, .block = {threads, 1, 1}, .cluster = {cluster, 1, 1}}, out);
    outcome.values = run.read<std::uint64_t>(out, threads);
    return outcome;
}

/// Waits by parity r9, with this instruction.
std::string wait_loop(const std::string& wait) { return "again: " + wait + " @!p bra again;"; }

}  // namespace

TEST_CASE("arrivals of all threads complete a phase; every form of wait sees what they wrote")
{
    const std::string work = R"(
    add.u32 r3, r0, 1000;
    st.shared.u32 [r2], r3;
    mov.u32 r9, 0;
    )";
    const std::string read = R"(
    xor.b32 r4, r0, 32;
    mad.lo.u32 r4, r4, 4, r1;
    ld.shared.u32 r5, [r4];
    cvt.u64.u32 d2, r5;
    st.global.u64 [d1], d2;
    )";
    const std::vector<std::string> forms{
        "mbarrier.arrive.shared::cta.b64 d3, [bar];" +
            wait_loop("mbarrier.try_wait.parity.shared::cta.b64 p, [bar], r9;"),
        "mbarrier.arrive.shared.b64 d3, [bar];" + wait_loop("mbarrier.test_wait.shared.b64 p, [bar], d3;"),
        "mbarrier.arrive.shared::cta.b64 d3, [bar];" +
            wait_loop("mbarrier.try_wait.shared::cta.b64 p, [bar], d3, 10000;"),
        "mbarrier.arrive.release.cta.shared::cta.b64 _, [bar], 1;" +
            wait_loop("mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [bar], 0;"),
        "cvta.shared.u64 d4, d5; mbarrier.arrive.b64 d3, [d4];" +
            wait_loop("mbarrier.try_wait.parity.b64 p, [d4], r9;"),
        "fence.acq_rel.cta; mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];" +
            wait_loop("mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [bar], r9;") + "fence.acq_rel.cta;",
        "mbarrier.arrive.expect_tx.shared::cta.b64 d3, [bar], 4; mbarrier.complete_tx.shared::cta.b64 [bar], 4;" +
            wait_loop("mbarrier.try_wait.parity.shared::cta.b64 p, [bar], r9;"),
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 8; mbarrier.complete_tx.relaxed.cta.shared::cta.b64 "
        "[bar], 8;"
        "mbarrier.arrive.shared::cta.b64 d3, [bar];" +
            wait_loop("mbarrier.try_wait.parity.shared::cta.b64 p, [bar], r9;"),
    };
    for (const std::string& form : forms) {
        CAPTURE(form);
        const std::string ptx = kernel("mbarrier.init.shared::cta.b64 [bar], 64;",
                                       "mov.u32 r10, bar; cvt.u64.u32 d5, r10;" + work + form + read);
        under_every_schedule(
            ptx, "b200",
            [](PtxRun& run) {
                const Outcome outcome = launch(run, 64);
                REQUIRE_CLEAN(run, outcome.result);
                for (std::uint64_t i = 0; i < 64; ++i) {
                    REQUIRE(outcome.values[i] == 1000 + (i ^ 32U));
                }
            },
            5);
    }
}

TEST_CASE("relaxed arrivals without a fence order nothing")
{
    PtxRun run(kernel("mbarrier.init.shared::cta.b64 [bar], 64;",
                      "st.shared.u32 [r2], r0; mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar]; mov.u32 r9, 0;" +
                          wait_loop("mbarrier.try_wait.parity.shared::cta.b64 p, [bar], r9;") +
                          "xor.b32 r4, r0, 32; mad.lo.u32 r4, r4, 4, r1; ld.shared.u32 r5, [r4];"));
    CHECK(launch(run, 64).result.code == 0);
    CHECK_FOUND(run, FindingKind::shared_race);
}

TEST_CASE("the state has the number of pending arrivals, and its phase completes when they have arrived")
{
    const std::string ptx = kernel("mbarrier.init.shared::cta.b64 [bar], 5;", R"(
    @!leader bra done;
    mbarrier.arrive.noComplete.shared::cta.b64 d2, [bar], 2;
    mbarrier.pending_count.b64 r3, d2;
    mbarrier.arrive.shared::cta.b64 d3, [bar];
    mbarrier.pending_count.b64 r4, d3;
    mbarrier.test_wait.shared::cta.b64 p, [bar], d3;
    selp.u32 r5, 1, 0, p;
    mbarrier.arrive_drop.shared::cta.b64 d4, [bar], 2;
    mbarrier.pending_count.b64 r6, d4;
    mbarrier.test_wait.shared::cta.b64 p, [bar], d3;
    selp.u32 r7, 1, 0, p;
    mbarrier.arrive.shared::cta.b64 d5, [bar], 3;
    mbarrier.pending_count.b64 r8, d5;
    mbarrier.test_wait.parity.shared::cta.b64 p, [bar], 1;
    selp.u32 r9, 1, 0, p;
    mul.lo.u32 r10, r3, 1000000;
    mad.lo.u32 r10, r4, 100000, r10;
    mad.lo.u32 r10, r5, 10000, r10;
    mad.lo.u32 r10, r6, 1000, r10;
    mad.lo.u32 r10, r7, 100, r10;
    mad.lo.u32 r10, r8, 10, r10;
    add.u32 r10, r10, r9;
    cvt.u64.u32 d6, r10;
    st.global.u64 [d0], d6;
done:
)");
    PtxRun run(ptx);
    const Outcome outcome = launch(run, 32);
    REQUIRE_CLEAN(run, outcome.result);
    // 5 pending; then 3, incomplete; then 2, complete; the next phase expects 3, and completes.
    CHECK(outcome.values[0] == 5302131 + 0);
}

TEST_CASE("a ring of stages between two warps: phases alternate")
{
    // Warp 0 fills two stages in turn, warp 1 empties them; bars 0, 1: full; bars 2, 3: empty.
    const std::string ptx = kernel(R"(
    mbarrier.init.shared::cta.b64 [bar], 32; mbarrier.init.shared::cta.b64 [bar+8], 32;
    mbarrier.init.shared::cta.b64 [bar+16], 32; mbarrier.init.shared::cta.b64 [bar+24], 32;)",
                                   R"(
    mov.u32 r3, 0;          // step
    mov.u32 r8, 0;          // sum
    mov.u32 r9, bar;
    and.b32 r10, r0, 31;
    setp.ge.u32 q, r0, 32;
loop:
    and.b32 r4, r3, 1;      // stage
    shr.u32 r5, r3, 1;
    and.b32 r5, r5, 1;      // parity of full
    xor.b32 r6, r5, 1;      // parity of empty
    mad.lo.u32 r7, r4, 8, r9;
    mad.lo.u32 r11, r4, 128, r1;
    mad.lo.u32 r11, r10, 4, r11;
    @q bra consume;
wait_empty:
    mbarrier.try_wait.parity.shared::cta.b64 p, [r7+16], r6;
    @!p bra wait_empty;
    mad.lo.u32 r12, r3, 100, r10;
    st.shared.u32 [r11], r12;
    mbarrier.arrive.shared::cta.b64 _, [r7];
    bra next;
consume:
wait_full:
    mbarrier.try_wait.parity.shared::cta.b64 p, [r7], r5;
    @!p bra wait_full;
    ld.shared.u32 r12, [r11];
    add.u32 r8, r8, r12;
    mbarrier.arrive.shared::cta.b64 _, [r7+16];
next:
    add.u32 r3, r3, 1;
    setp.lt.u32 p, r3, 11;
    @p bra loop;
    cvt.u64.u32 d2, r8;
    st.global.u64 [d1], d2;
)");
    under_every_schedule(ptx, "b200", [](PtxRun& run) {
        const Outcome outcome = launch(run, 64);
        REQUIRE_CLEAN(run, outcome.result);
        for (std::uint64_t i = 0; i < 32; ++i) {
            REQUIRE(outcome.values[32 + i] == 5500 + 11 * i);
        }
    });
}

TEST_CASE("arrivals on a peer's barrier")
{
    for (const char* arrive : {"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r5];",
                               "mbarrier.arrive.shared::cluster.b64 _, [r5], 1;",
                               "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [r5], 16; "
                               "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [r5], 16;",
                               "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [r5], 16; "
                               "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [r5], 16; "
                               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r5];"}) {
        CAPTURE(arrive);
        // CTA 0 waits for 32 arrivals of CTA 1, which has written into CTA 0's memory before.
        const std::string ptx =
            kernel("mbarrier.init.shared::cta.b64 [bar], 32; fence.mbarrier_init.release.cluster;", std::string(R"(
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait.acquire;
    mov.u32 r3, %cluster_ctarank;
    setp.eq.u32 q, r3, 0;
    @q bra wait;
    mov.u32 r4, bar;
    mapa.shared::cluster.u32 r5, r4, 0;
    mapa.shared::cluster.u32 r6, r2, 0;
    add.u32 r7, r0, 5;
    st.shared::cluster.u32 [r6], r7;
    )") + arrive + R"(
    bra done;
wait:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [bar], 0;
    @!p bra wait;
    xor.b32 r8, r0, 1;
    mad.lo.u32 r8, r8, 4, r1;
    ld.shared.u32 r9, [r8];
    cvt.u64.u32 d2, r9;
    st.global.u64 [d1], d2;
done:
    barrier.cluster.arrive;
    barrier.cluster.wait;
)");
        under_every_schedule(
            ptx, "h200",
            [](PtxRun& run) {
                const Outcome outcome = launch(run, 32, 2);
                REQUIRE_CLEAN(run, outcome.result);
                for (std::uint64_t i = 0; i < 32; ++i) {
                    REQUIRE(outcome.values[i] == (i ^ 1U) + 5);
                }
            },
            5);
    }
}

TEST_CASE("a peer's use of a barrier before it is known to be initialized is reported")
{
    // The cluster synchronizes, but nothing orders the initialization before it: a relaxed arrival without a fence.
    const std::string ptx = kernel("mbarrier.init.shared::cta.b64 [bar], 1;", R"(
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait.acquire;
    mov.u32 r3, %cluster_ctarank;
    setp.eq.and.u32 q, r3, 1, leader;
    mov.u32 r4, bar;
    mapa.shared::cluster.u32 r5, r4, 0;
    @q mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r5];
    barrier.cluster.arrive;
    barrier.cluster.wait;
)");
    PtxRun run(ptx, "h200");
    launch(run, 32, 2);
    CHECK_FOUND(run, FindingKind::barrier_misuse);
    CHECK(findings_text(run).find("barrier.cluster.arrive.relaxed in between does not order it") != std::string::npos);
    // Without any barrier, the message names the whole cure.
    std::string bare = ptx;
    for (const std::string part : {"barrier.cluster.arrive.relaxed;", "barrier.cluster.wait.acquire;"}) {
        bare.erase(bare.find(part), part.size());
    }
    PtxRun unordered(bare, "h200");
    launch(unordered, 32, 2);
    CHECK(findings_text(unordered).find("execute fence.mbarrier_init and barrier.cluster in between") !=
          std::string::npos);
}

TEST_CASE("another warp's use of a barrier without synchronization after its initialization is reported")
{
    const std::string ptx = module_text("sm_80", R"(
.visible .entry k(.param .u64 out)
{
    .reg .pred p; .reg .b32 r<2>;
    .shared .align 8 .b64 bar;
    mov.u32 r0, %tid.x;
    setp.eq.u32 p, r0, 0;
    @p mbarrier.init.shared.b64 [bar], 64;
    mbarrier.arrive.shared.b64 _, [bar];
    ret;
}
)");
    PtxRun run(ptx);
    launch(run, 64);
    CHECK_FOUND(run, FindingKind::barrier_misuse);
}

TEST_CASE("misuse of an mbarrier is reported")
{
    const auto found = [](const std::string& init, const std::string& body, FindingKind kind) {
        CAPTURE(init);
        CAPTURE(body);
        PtxRun run(kernel(init, body));
        launch(run, 32);
        CHECK_FOUND(run, kind);
    };
    // Not initialized.
    found("", "@leader mbarrier.arrive.shared::cta.b64 _, [bar];", FindingKind::barrier_misuse);
    // Initialized again without inval.
    found("mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.init.shared::cta.b64 [bar], 2;", "",
          FindingKind::barrier_misuse);
    // Used after inval.
    found("mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.inval.shared::cta.b64 [bar];",
          "@leader mbarrier.arrive.shared::cta.b64 _, [bar];", FindingKind::barrier_misuse);
    // Counts.
    found("mov.u32 r3, 0; mbarrier.init.shared::cta.b64 [bar], r3;", "", FindingKind::barrier_misuse);
    found("mbarrier.init.shared::cta.b64 [bar], 3;", "@leader mbarrier.arrive.shared::cta.b64 _, [bar], 4;",
          FindingKind::barrier_misuse);
    found("mbarrier.init.shared::cta.b64 [bar], 3;", "@leader mbarrier.arrive.noComplete.shared::cta.b64 d3, [bar], 3;",
          FindingKind::barrier_misuse);
    found("mbarrier.init.shared::cta.b64 [bar], 3;",
          "mov.u32 r3, 1048575; @leader mbarrier.expect_tx.shared::cta.b64 [bar], r3; @leader "
          "mbarrier.expect_tx.shared::cta.b64 [bar], r3;",
          FindingKind::transaction_count);
    // The memory of a barrier used for data.
    found("mbarrier.init.shared::cta.b64 [bar], 1;", "@leader st.shared.u32 [bar], r0;", FindingKind::barrier_misuse);
}

TEST_CASE("a barrier's memory may be reused after inval, also for another barrier")
{
    PtxRun run(kernel("mbarrier.init.shared::cta.b64 [bar], 32;", R"(
    mbarrier.arrive.shared::cta.b64 d3, [bar];
    mov.u32 r9, 0;
again:
    mbarrier.try_wait.shared::cta.b64 p, [bar], d3;
    @!p bra again;
    bar.sync 0;
    @leader mbarrier.inval.shared::cta.b64 [bar];
    @leader st.shared.u64 [bar], d0;
    @leader mbarrier.init.shared::cta.b64 [bar], 7;
)"));
    const Outcome outcome = launch(run, 32);
    REQUIRE_CLEAN(run, outcome.result);
}

TEST_CASE("a misaligned barrier and one outside of shared memory fault")
{
    PtxRun misaligned(kernel("mbarrier.init.shared::cta.b64 [data+4], 1;", ""));
    CHECK(launch(misaligned, 32).result.code == 716);
    CHECK(misaligned.count(FindingKind::misaligned) == 1);
    PtxRun outside(kernel("mov.u32 r3, 0x8000; mbarrier.init.shared::cta.b64 [r3], 1;", ""));
    CHECK(launch(outside, 32).result.code == 700);
    CHECK(outside.count(FindingKind::out_of_bounds) == 1);
}

TEST_CASE("a wait that never ends is a deadlock, and the report says what is missing")
{
    under_every_schedule(
        kernel("mbarrier.init.shared::cta.b64 [bar], 3;", R"(
    @leader mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
again:
    mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
    @!p bra again;
)"),
        "b200",
        [](PtxRun& run) {
            const Outcome outcome = launch(run, 64);
            CHECK(outcome.result.code == 702);
            REQUIRE(run.count(FindingKind::deadlock) == 1);
            INFO(outcome.result.message);
            CHECK(outcome.result.message.find("waits for phase 0 of the mbarrier at 0x400 of CTA 0") !=
                  std::string::npos);
            CHECK(outcome.result.message.find("2 of 3 arrivals are missing") != std::string::npos);
            CHECK(outcome.result.message.find("512 expected bytes") != std::string::npos);
        },
        3);
}

TEST_CASE("a program that gives up after several failed try_waits continues")
{
    PtxRun run(kernel("mbarrier.init.shared::cta.b64 [bar], 1;", R"(
    mov.u32 r3, 0;
again:
    mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0, 100;
    @p bra done;
    add.u32 r3, r3, 1;
    setp.lt.u32 q, r3, 5;
    @q bra again;
done:
    cvt.u64.u32 d2, r3;
    st.global.u64 [d1], d2;
)"));
    const Outcome outcome = launch(run, 32);
    REQUIRE_CLEAN(run, outcome.result);
    CHECK(outcome.values[0] == 5);
}

TEST_CASE("invalid forms are refused when the module is loaded")
{
    const auto refused = [](const std::string& instruction) {
        CAPTURE(instruction);
        const PtxRun run(kernel("", instruction));
        CHECK_FALSE(run.module().find_kernel("k")->load_error.empty());
    };
    refused("mbarrier.init.shared::cluster.b64 [bar], 1;");
    refused("mbarrier.arrive.shared::cluster.b64 d3, [bar];");
    refused("mbarrier.try_wait.parity.shared::cluster.b64 p, [bar], 0;");
    refused("mbarrier.test_wait.parity.shared::cta.b64 p, [bar], 0, 100;");
    refused("mbarrier.arrive.shared::cta.b32 d3, [bar];");
    refused("mbarrier.arrive.noComplete.shared::cta.b64 d3, [bar];");
    refused("mbarrier.wait.shared::cta.b64 [bar];");
    refused("fence.proxy.async.shared;");
    refused("fence.acq_rel;");
    refused("barrier.cluster.sync;");
    refused("bar.arrive 1;");
    refused("bar.red.popc.pred p, 0, q;");
}
