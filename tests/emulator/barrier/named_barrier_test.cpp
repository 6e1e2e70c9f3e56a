// bar and barrier against their definition: who waits for whom, counts, reductions, and what is reported.

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// Each thread writes its id to shared memory, synchronizes, and reads the value of thread (id + 32) mod n.
std::string exchange(const std::string& barrier)
{
    return module_text("sm_80", R"(
.visible .entry exchange(.param .u64 out)
{
    .reg .pred p; .reg .b32 r<10>; .reg .b64 d<4>;
    .shared .align 4 .b8 data[4096];
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, %ntid.x;
    mov.u32 r2, data;
    mad.lo.u32 r3, r0, 4, r2;
    mul.lo.u32 r4, r0, 7;
    st.shared.u32 [r3], r4;
    )" + barrier + R"(
    add.u32 r5, r0, 32;
    rem.u32 r5, r5, r1;
    mad.lo.u32 r6, r5, 4, r2;
    ld.shared.u32 r7, [r6];
    mul.wide.u32 d1, r0, 4;
    add.u64 d2, d0, d1;
    st.global.u32 [d2], r7;
    ret;
}
)");
}

void check_exchange(const std::string& barrier, std::uint32_t threads)
{
    CAPTURE(barrier);
    under_every_schedule(
        exchange(barrier), "b200",
        [&](PtxRun& run) {
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(threads));
            const LaunchResult result = run.launch("exchange", {.block = {threads, 1, 1}}, out);
            REQUIRE_CLEAN(run, result);
            const auto values = run.read<std::uint32_t>(out, threads);
            for (std::uint32_t i = 0; i < threads; ++i) {
                REQUIRE(values[i] == (i + 32) % threads * 7);
            }
        },
        4);
}

}  // namespace

TEST_CASE("with every form of a barrier for all threads, the threads wait for each other")
{
    for (const char* barrier : {"bar.sync 0;", "bar.cta.sync 3;", "barrier.sync 15;", "barrier.cta.sync.aligned 1;",
                                "bar.sync 0, 128;", "mov.u32 r8, 5; mov.u32 r9, 128; barrier.sync r8, r9;",
                                "mov.u32 r8, 5; bar.sync r8;", "bar.red.popc.u32 r8, 2, 1;"}) {
        check_exchange(barrier, 128);
    }
}

TEST_CASE("an incomplete last warp counts as a whole warp")
{
    check_exchange("bar.sync 0;", 80);
    check_exchange("bar.sync 0, 96;", 80);
}

TEST_CASE("without a barrier the exchange is a race")
{
    PtxRun run(exchange(""));
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(128));
    run.launch("exchange", {.block = {128, 1, 1}}, out);
    CHECK(run.count(FindingKind::shared_race) + run.count(FindingKind::uninitialized_shared) > 0);
}

TEST_CASE("different barriers do not order the warps")
{
    // Warps 0-1 and 2-3 synchronize only among themselves, but warp 1 reads from warp 2.
    PtxRun run(exchange("shr.u32 r8, r0, 6; bar.sync r8, 64;"));
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(128));
    const LaunchResult result = run.launch("exchange", {.block = {128, 1, 1}}, out);
    CHECK(result.code == 0);
    CHECK(run.count(FindingKind::shared_race) + run.count(FindingKind::uninitialized_shared) > 0);
}

TEST_CASE("bar.red gives every thread the count, the conjunction and the disjunction, phase after phase")
{
    const std::string ptx = module_text("sm_80", R"(
.visible .entry reduce(.param .u64 out)
{
    .reg .pred p<8>; .reg .b32 r<10>; .reg .b64 d<4>;
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
    setp.lt.u32 p0, r0, 37;
    setp.lt.u32 p1, r0, 64;
    setp.eq.u32 p2, r0, 63;
    bar.red.popc.u32 r1, 0, p0;
    bar.red.popc.u32 r2, 0, 64, !p0;
    bar.red.and.pred p3, 0, p1;
    barrier.red.and.pred p4, 0, p0;
    bar.red.or.pred p5, 1, 64, p2;
    barrier.cta.red.or.pred.aligned p6, 1, !p1;
    selp.u32 r3, 1, 0, p3;
    selp.u32 r4, 2, 0, p4;
    selp.u32 r5, 4, 0, p5;
    selp.u32 r6, 8, 0, p6;
    add.u32 r3, r3, r4;
    add.u32 r5, r5, r6;
    add.u32 r3, r3, r5;
    mul.wide.u32 d1, r0, 16;
    add.u64 d2, d0, d1;
    st.global.u32 [d2], r1;
    st.global.u32 [d2+4], r2;
    st.global.u32 [d2+8], r3;
    ret;
}
)");
    under_every_schedule(
        ptx, "t4",
        [&](PtxRun& run) {
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(64 * 4));
            const LaunchResult result = run.launch("reduce", {.block = {64, 1, 1}}, out);
            REQUIRE_CLEAN(run, result);
            const auto values = run.read<std::uint32_t>(out, 64 * 4);
            for (std::size_t i = 0; i < 64; ++i) {
                REQUIRE(values[4 * i] == 37);
                REQUIRE(values[4 * i + 1] == 27);
                REQUIRE(values[4 * i + 2] == (1U | 4U));
            }
        },
        4);
}

namespace {

/// Warp 0 produces, warp 1 consumes: the producer does not wait on `full`.
const char* const producer_consumer = R"(
.visible .entry pipeline(.param .u64 out)
{
    .reg .pred p; .reg .b32 r<10>; .reg .b64 d<4>;
    .shared .align 4 .b8 data[128];
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
    and.b32 r1, r0, 31;
    mov.u32 r2, data;
    mad.lo.u32 r2, r1, 4, r2;
    mov.u32 r5, 0;
    mov.u32 r6, 0;
    setp.ge.u32 p, r0, 32;
    @p bra consumer;
producer:
    add.u32 r3, r1, r5;
    st.shared.u32 [r2], r3;
    bar.arrive 1, 64;
    bar.sync 2, 64;
    add.u32 r5, r5, 1;
    setp.lt.u32 p, r5, 10;
    @p bra producer;
    ret;
consumer:
    bar.sync 1, 64;
    ld.shared.u32 r4, [r2];
    add.u32 r6, r6, r4;
    bar.arrive 2, 64;
    add.u32 r5, r5, 1;
    setp.lt.u32 p, r5, 10;
    @p bra consumer;
    mul.wide.u32 d1, r1, 4;
    add.u64 d2, d0, d1;
    st.global.u32 [d2], r6;
    ret;
}
)";

}  // namespace

TEST_CASE("bar.arrive does not wait, but the other side's bar.sync does")
{
    under_every_schedule(module_text("sm_80", producer_consumer), "b200", [&](PtxRun& run) {
        const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(32));
        const LaunchResult result = run.launch("pipeline", {.block = {64, 1, 1}}, out);
        REQUIRE_CLEAN(run, result);
        const auto values = run.read<std::uint32_t>(out, 32);
        for (std::uint32_t i = 0; i < 32; ++i) {
            REQUIRE(values[i] == 10 * i + 45);
        }
    });
}

TEST_CASE("exited warps count as arrived only if the barrier has no count")
{
    const auto kernel = [](const std::string& barrier) {
        return module_text("sm_80", R"(
.visible .entry leave(.param .u64 out)
{
    .reg .pred p; .reg .b32 r<4>; .reg .b64 d<4>;
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
    setp.ge.u32 p, r0, 64;
    @p ret;
    )" + barrier + R"(
    mul.wide.u32 d1, r0, 4;
    add.u64 d2, d0, d1;
    st.global.u32 [d2], r0;
    ret;
}
)");
    };
    under_every_schedule(
        kernel("bar.sync 0;"), "b200",
        [&](PtxRun& run) {
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(64));
            const LaunchResult result = run.launch("leave", {.block = {128, 1, 1}}, out);
            REQUIRE_CLEAN(run, result);
            CHECK(run.read<std::uint32_t>(out, 64)[63] == 63);
        },
        4);
    PtxRun run(kernel("bar.sync 0, 128;"));
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(64));
    const LaunchResult result = run.launch("leave", {.block = {128, 1, 1}}, out);
    CHECK(result.code == 702);
    REQUIRE(run.count(FindingKind::deadlock) == 1);
    CHECK(result.message.find("barrier 0: 64 of 128 threads have arrived") != std::string::npos);
    CHECK(run.report.text().starts_with("error: deadlock: no warp can continue"));
}

TEST_CASE("lanes of a warp may arrive later at a barrier without .aligned")
{
    const std::string ptx = module_text("sm_80", R"(
.visible .entry split(.param .u64 out)
{
    .reg .pred p; .reg .b32 r<6>; .reg .b64 d<4>;
    .shared .align 4 .b8 data[256];
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mad.lo.u32 r2, r0, 4, r1;
    and.b32 r3, r0, 1;
    setp.eq.u32 p, r3, 0;
    st.shared.u32 [r2], r0;
    @p bra even;
    barrier.sync 0;
    bra done;
even:
    barrier.sync 0;
done:
    xor.b32 r4, r0, 33;
    mad.lo.u32 r4, r4, 4, r1;
    ld.shared.u32 r5, [r4];
    mul.wide.u32 d1, r0, 4;
    add.u64 d2, d0, d1;
    st.global.u32 [d2], r5;
    ret;
}
)");
    under_every_schedule(ptx, "b200", [&](PtxRun& run) {
        const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(64));
        const LaunchResult result = run.launch("split", {.block = {64, 1, 1}}, out);
        REQUIRE_CLEAN(run, result);
        const auto values = run.read<std::uint32_t>(out, 64);
        for (std::uint32_t i = 0; i < 64; ++i) {
            REQUIRE(values[i] == (i ^ 33U));
        }
    });
}

TEST_CASE("an .aligned barrier in a divergent branch is reported")
{
    const std::string ptx = module_text("sm_80", R"(
.visible .entry diverge()
{
    .reg .pred p; .reg .b32 r<2>;
    mov.u32 r0, %tid.x;
    setp.lt.u32 p, r0, 7;
    @p bra some;
    bar.sync 0;
    ret;
some:
    bar.sync 0;
    ret;
}
)");
    under_every_schedule(
        ptx, "b200",
        [&](PtxRun& run) {
            run.launch("diverge", {.block = {32, 1, 1}});
            CHECK_FOUND(run, FindingKind::divergent_aligned);
        },
        3);
}

TEST_CASE("wrong barrier numbers and counts are reported")
{
    const auto run_with = [](const std::string& barrier, auto&& check) {
        CAPTURE(barrier);
        PtxRun run(exchange(barrier));
        const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(128));
        check(run, run.launch("exchange", {.block = {128, 1, 1}}, out));
    };
    run_with("bar.sync 0, 40;", [](PtxRun& run, const LaunchResult& result) {
        CHECK(result.code == 715);
        CHECK_FOUND(run, FindingKind::invalid_operand);
    });
    run_with("mov.u32 r8, 16; bar.sync r8;", [](PtxRun& run, const LaunchResult& result) {
        CHECK(result.code == 715);
        CHECK_FOUND(run, FindingKind::invalid_operand);
    });
    run_with("bar.sync 0, 160;", [](PtxRun& run, const LaunchResult& result) {
        CHECK(result.code == 702);
        CHECK_FOUND(run, FindingKind::barrier_misuse);
        CHECK_FOUND(run, FindingKind::deadlock);
    });
    run_with("shr.u32 r8, r0, 6; mul.lo.u32 r8, r8, 64; sub.u32 r8, 128, r8; bar.sync 0, r8;",
             [](PtxRun& run, const LaunchResult&) {
                 CHECK_FOUND(run, FindingKind::barrier_misuse);  // 128 here, 64 there
             });
}

TEST_CASE("bar.warp.sync joins diverged lanes, also in several groups at once")
{
    const std::string ptx = module_text("sm_80", R"(
.visible .entry tiles(.param .u64 out)
{
    .reg .pred p; .reg .b32 r<8>; .reg .b64 d<4>;
    .shared .align 4 .b8 data[128];
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mad.lo.u32 r2, r0, 4, r1;
    and.b32 r3, r0, 16;
    shl.b32 r4, 0xFFFF, r3;
    setp.eq.u32 p, r0, 5;
    @p bra late;
    bra together;
late:
    st.shared.u32 [r2], 77;
together:
    bar.warp.sync r4;
    setp.eq.u32 p, r0, 6;
    @!p bra end;
    ld.shared.u32 r5, [data+20];
    st.global.u32 [d0], r5;
end:
    bar.warp.sync 0xffffffff;
    ret;
}
)");
    under_every_schedule(ptx, "b200", [&](PtxRun& run) {
        const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(1));
        const LaunchResult result = run.launch("tiles", {.block = {32, 1, 1}}, out);
        REQUIRE_CLEAN(run, result);
        CHECK(run.read<std::uint32_t>(out, 1)[0] == 77);
    });
}

namespace {

/// Warps 0 and 1 exchange values through shared memory at barrier `first`, warps 2 and 3 at barrier `second`, twice.
std::string two_groups(unsigned first, unsigned second, const std::string& between = "")
{
    const auto group = [](unsigned barrier) {
        std::string text;
        for (int i = 0; i < 2; ++i) {
            text += "st.shared.u32 [r3], r0;\nbar.sync " + std::to_string(barrier) +
                    ", 64;\nld.shared.u32 r7, [r6];\nbar.sync " + std::to_string(barrier) + ", 64;\n";
        }
        return text;
    };
    return module_text("sm_80", R"(
.visible .entry groups(.param .u64 out)
{
    .reg .pred p, q; .reg .b32 r<10>; .reg .b64 d<4>;
    .shared .align 4 .b8 data[512];
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r2, data;
    mad.lo.u32 r3, r0, 4, r2;
    xor.b32 r5, r0, 32;
    mad.lo.u32 r6, r5, 4, r2;
    setp.ge.u32 p, r0, 64;
    @p bra SECOND;
    )" + group(first) + between +
                                    R"(
    bra DONE;
SECOND:
    )" + between + group(second) + R"(
DONE:
    mul.wide.u32 d1, r0, 4;
    add.u64 d2, d0, d1;
    st.global.u32 [d2], r7;
    ret;
}
)");
}

}  // namespace

TEST_CASE("two groups of warps at one barrier may be counted together, which is reported unless they are ordered")
{
    const auto execute = [](const std::string& ptx, auto&& body) {
        under_every_schedule(ptx, "b200", [&](PtxRun& run) {
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(128));
            const LaunchResult result = run.launch("groups", {.block = {128, 1, 1}}, out);
            body(run, result, run.read<std::uint32_t>(out, 128));
        });
    };
    const auto clean = [](PtxRun& run, const LaunchResult& result, const std::vector<std::uint32_t>& values) {
        REQUIRE_CLEAN(run, result);
        for (std::uint32_t i = 0; i < 128; ++i) {
            REQUIRE(values[i] == (i ^ 32U));
        }
    };
    execute(two_groups(1, 2), clean);
    execute(two_groups(1, 1, "bar.sync 0;\n"), clean);
    execute(two_groups(1, 1), [](PtxRun& run, const LaunchResult&, const std::vector<std::uint32_t>&) {
        CHECK_FOUND(run, FindingKind::barrier_misuse);
        CHECK(run.report.text().find("at barrier 1 without knowing that the phase before it") != std::string::npos);
    });
}

TEST_CASE("a wrong barrier number, or a warp that has returned from under a count, is a deadlock")
{
    for (const char* wrong : {"setp.lt.u32 p, r0, 32;\n@p bar.sync 1;\n@!p bar.sync 2;\n",
                              "setp.lt.u32 p, r0, 32;\n@p bar.sync 1, 64;\n@!p bar.sync 2, 64;\n",
                              "setp.lt.u32 p, r0, 32;\n@p bar.arrive 1, 64;\n@!p bar.sync 2, 64;\n",
                              "setp.lt.u32 p, r0, 32;\n@p ret;\nbar.sync 1, 64;\n"}) {
        CAPTURE(wrong);
        under_every_schedule(
            module_text("sm_80", ".visible .entry k()\n{\n.reg .pred p; .reg .b32 r<4>;\nmov.u32 r0, %tid.x;\n" +
                                     std::string(wrong) + "ret;\n}\n"),
            "b200",
            [&](PtxRun& run) {
                const LaunchResult result = run.launch("k", {.block = {64, 1, 1}});
                CHECK(result.code == 702);
                CHECK(run.count(FindingKind::deadlock) == 1);
            },
            4);
    }
}
