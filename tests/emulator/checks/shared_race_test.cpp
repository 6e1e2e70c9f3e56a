// Races in shared memory between warps of a CTA or cluster: every planted race is reported, and no correct program is.

#include <doctest/doctest.h>

#include <string>

#include "../support/run_ptx.hpp"

namespace tessera::emulator::test {

namespace {

/// Runs `body` with four warps (%warp, %lane). s is 4096 bytes of zeroed shared memory, and %mine is the address of the
/// thread's own word of s.
struct Warps : PtxRun {
    explicit Warps(const std::string& body, Schedule schedule = Schedule::in_order, std::uint64_t seed = 1,
                   unsigned cluster = 1, bool same_values = false)
        : PtxRun(module_text("sm_100a", R"(
.global .align 16 .b32 flags[64];
.visible .entry k(.param .u64 out)
{
    .reg .b16 %h<9>; .reg .b32 %r<30>; .reg .b64 %d<30>; .reg .f32 %f<9>; .reg .pred %p<9>;
    .reg .b32 %warp, %lane, %thread, %mine; .reg .b64 %out;
    .shared .align 16 .b8 s[4096]; .shared .align 4 .b32 flag;
    ld.param.u64 %out, [out]; mov.u32 %thread, %tid.x; shr.u32 %warp, %thread, 5; and.b32 %lane, %thread, 31;
    mov.b32 %r29, s; mad.lo.u32 %mine, %thread, 4, %r29;
    mov.u32 %r28, 0;
ZERO: mad.lo.u32 %r27, %r28, 512, %mine; st.shared.b32 [%r27], 0; add.u32 %r28, %r28, 1; setp.lt.u32 %p8, %r28, 8;
@%p8 bra ZERO;
    setp.eq.u32 %p8, %thread, 0; @%p8 st.shared.b32 [flag], 0;
    setp.eq.u32 %p0, %warp, 0; setp.eq.u32 %p1, %warp, 1;
    bar.sync 0;
)" + body + "\n ret;\n}"))
    {
        options.same_value_races = same_values;
        options.schedule = schedule;
        options.seed = seed;
        const std::uint64_t out = buffer(std::vector<std::uint32_t>(1024));
        result = launch("k", {.grid = {cluster, 1, 1}, .block = {128, 1, 1}, .cluster = {cluster, 1, 1}}, out);
        error = module().find_kernel("k")->load_error;
    }
    LaunchResult result;
    std::string error;
};

constexpr Schedule schedules[] = {Schedule::in_order, Schedule::random, Schedule::adversarial};

void expect_race(const std::string& body, unsigned cluster = 1)
{
    CAPTURE(body);
    for (const Schedule schedule : schedules) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            const Warps run(body, schedule, seed, cluster);
            INFO(run.error, run.result.message, run.report.text());
            REQUIRE(run.result.code == 0);
            CHECK(run.count(FindingKind::shared_race) > 0);
        }
    }
}

void expect_clean(const std::string& body, unsigned cluster = 1)
{
    CAPTURE(body);
    for (const Schedule schedule : schedules) {
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
            const Warps run(body, schedule, seed, cluster);
            INFO(run.error, run.result.message, run.report.text());
            REQUIRE(run.result.code == 0);
            CHECK(run.report.findings().empty());
        }
    }
}

const std::string read_neighbour = "xor.b32 %r1, %thread, 32; mad.lo.u32 %r2, %r1, 4, %r29; ld.shared.b32 %r3, [%r2];";

}  // namespace

TEST_CASE("a missing barrier is reported between write and read, and between read and next write")
{
    expect_race("st.shared.b32 [%mine], %thread;" + read_neighbour);
    expect_clean("st.shared.b32 [%mine], %thread; bar.sync 0;" + read_neighbour);
    expect_race("st.shared.b32 [%mine], %thread; bar.sync 0;" + read_neighbour + "st.shared.b32 [%mine], 0;");
    expect_clean("st.shared.b32 [%mine], %thread; bar.sync 0;" + read_neighbour +
                 "bar.sync 0; st.shared.b32 [%mine], 0;");
    expect_race("st.shared.b32 [s], %thread;");
    expect_race("@%p0 st.shared.b32 [s], 1; @%p1 st.shared.b32 [s], 2;");
    expect_race("@%p0 atom.shared.add.u32 %r1, [s], 1; @%p1 ld.shared.b32 %r2, [s];");
    expect_race("cvta.shared.u64 %d1, s; @%p0 st.b32 [%d1+64], 1; @%p1 ld.shared.v4.b32 {%r1,%r2,%r3,%r4}, [s+64];");
}

TEST_CASE("stores of equal values are a race only with --also")
{
    for (const std::string body :
         {"st.shared.b32 [s], 7;", "st.shared.v2.b32 [s], {7, 8};", "st.shared.b8 [s+1], 7;",
          "cvta.shared.u64 %d1, s; st.b64 [%d1], 7;", "mad.lo.u32 %r1, %lane, 4, %r29; st.shared.b32 [%r1], %lane;"}) {
        expect_clean(body);
        CAPTURE(body);
        for (const Schedule schedule : schedules) {
            const Warps run(body, schedule, 1, 1, true);
            INFO(run.result.message, run.report.text());
            REQUIRE(run.report.findings().size() == 1);
            CHECK(run.report.findings()[0].kind == FindingKind::same_value_race);
        }
    }
    // One of them differs, in the first or in another word or byte, or by its order in the warp.
    expect_race("mov.b32 %r1, 7; @%p1 mov.b32 %r1, 8; st.shared.b32 [s], %r1;");
    expect_race("mov.b32 %r1, 7; @%p1 mov.b32 %r1, 8; st.shared.v2.b32 [s], {7, %r1};");
    expect_race(
        "mov.b32 %r1, 7; @%p1 mov.b32 %r1, 8; mad.lo.u32 %r2, %lane, 4, %r29; setp.eq.u32 %p2, %lane, 31; "
        "selp.b32 %r3, %r1, 5, %p2; st.shared.b32 [%r2], %r3;");
    expect_race("mov.b16 %h1, 7; @%p1 mov.b16 %h1, 8; st.shared.b8 [s+3], %h1;");
    // Readers still race.
    expect_race("@%p0 st.shared.b32 [s], 7; @%p1 ld.shared.b32 %r1, [s];");
    expect_race("@%p0 ld.shared.b32 %r1, [s]; @%p1 st.shared.b32 [s], 0;");
    // So do atomics with plain stores.
    expect_race("@%p0 atom.shared.exch.b32 %r1, [s], 7; @%p1 st.shared.b32 [s], 7;");
}

TEST_CASE("one warp never races with itself, nor do warps on separate memory")
{
    expect_clean("st.shared.b32 [%mine], 1; ld.shared.b32 %r1, [%mine]; st.shared.b32 [%mine], %r1;");
    expect_clean("@%p0 st.shared.b32 [s], %thread; @%p0 ld.shared.b32 %r1, [s]; @%p0 st.shared.b32 [s+4], %r1;");
    expect_clean(
        "mad.lo.u32 %r1, %warp, 33, %lane; add.u32 %r1, %r1, %r29; st.shared.b8 [%r1], %lane; ld.shared.b8 %r2, "
        "[%r1];");
}

TEST_CASE("loads since the last barrier of all warps race with stores that no barrier separates from them")
{
    // s is written and all warps have waited, so that these loads are only noted. Rows start at any word.
    const std::string row = "shl.b32 %r1, %lane, 2; add.u32 %r1, %r1, %r29; ld.shared.b32 %r2, [%r1+80];";
    const std::string column = "mad.lo.u32 %r1, %lane, 36, %r29; ld.shared.b32 %r2, [%r1+12];";
    const std::string one = "ld.shared.v2.b32 {%r2, %r3}, [s+88];";
    const std::string scattered =
        "mul.lo.u32 %r1, %lane, 44; and.b32 %r1, %r1, 124; add.u32 %r1, %r1, %r29; ld.shared.b32 %r2, [%r1+48];";
    for (const std::string& load : {row, column, one, scattered}) {
        for (const std::string store :
             {"st.shared.b32 [s+84], 1;", "st.shared.b8 [s+87], 1;", "atom.shared.add.u32 %r4, [s+84], 1;",
              "st.shared.v4.b32 [s+80], {1, 2, 3, 4};"}) {
            const bool apart = load == one && store.find("v4") == std::string::npos;
            if (apart) {
                expect_clean(load + "@%p1 " + store);
            } else {
                expect_race(load + "@%p1 " + store);
            }
            expect_clean(load + "bar.sync 0; @%p1 " + store);
            expect_clean("@%p1 " + store + "bar.sync 0;" + load);
        }
    }
    // Two of the warps wait for each other; the others may still read.
    const std::string half = "setp.lt.u32 %p2, %warp, 2;";
    expect_race(half + row + "@%p2 barrier.sync 1, 64; @%p0 st.shared.b32 [s+84], 1;");
    expect_clean(half + "@!%p2 bra AT; " + row + "barrier.sync 1, 64; @%p0 st.shared.b32 [s+84], 1; AT:");
    // What a warp reads before and after it has met another.
    expect_race(half + row + "@%p2 barrier.sync 1, 64;" + row + "@%p0 st.shared.b32 [s+84], 1;");
}

TEST_CASE("named barriers order only their own warps")
{
    expect_clean("shr.u32 %r9, %warp, 1; add.u32 %r9, %r9, 1; st.shared.b32 [%mine], 5; barrier.sync %r9, 64;" +
                 read_neighbour);
    expect_race(
        "shr.u32 %r9, %warp, 1; add.u32 %r9, %r9, 1; st.shared.b32 [%mine], 5; barrier.sync %r9, 64;"
        "xor.b32 %r1, %thread, 64; mad.lo.u32 %r2, %r1, 4, %r29; ld.shared.b32 %r3, [%r2];");
    // Producer and consumer: arrive on one side, sync on the other.
    expect_clean(
        "@!%p0 bra NOT0; st.shared.b32 [%mine], 5; barrier.arrive 3, 64; bra END; NOT0: @!%p1 bra END; barrier.sync 3, "
        "64;" +
        read_neighbour + "END:");
}

TEST_CASE("spinning on a flag in memory gives order, as PTX describes it, and with volatile")
{
    struct Style {
        std::string set, wait;  // wait reads the flag into %r10
    };
    const std::vector<Style> styles{
        {"membar.cta; st.volatile.shared.b32 [flag], 1;", "ld.volatile.shared.b32 %r10, [flag];"},
        {"fence.acq_rel.cta; st.relaxed.cta.shared.b32 [flag], 1;",
         "ld.relaxed.cta.shared.b32 %r10, [flag]; fence.acq_rel.cta;"},
        {"st.release.cta.shared.b32 [flag], 1;", "ld.acquire.cta.shared.b32 %r10, [flag];"},
        {"membar.cta; atom.shared.exch.b32 %r11, [flag], 1;", "ld.volatile.shared.b32 %r10, [flag];"},
        {"red.release.cta.shared.add.u32 [flag], 1;", "ld.acquire.cta.shared.b32 %r10, [flag];"},
        {"membar.cta; st.volatile.shared.b32 [flag], 1;", "atom.shared.or.b32 %r10, [flag], 0; membar.cta;"},
        {"atom.acq_rel.cta.shared.cas.b32 %r11, [flag], 0, 1;", "atom.acquire.cta.shared.cas.b32 %r10, [flag], 2, 2;"},
        {"membar.gl; st.volatile.global.b32 [flags+8], 1;", "ld.volatile.global.b32 %r10, [flags+8];"},
        {"st.release.gpu.global.b32 [flags+8], 1;", "ld.acquire.gpu.global.b32 %r10, [flags+8];"},
        {"cvta.global.u64 %d5, flags; red.release.gpu.add.u32 [%d5+8], 1;",
         "ld.acquire.gpu.global.b32 %r10, [flags+8];"},
        {"cvta.shared.u64 %d5, flag; st.release.cta.b32 [%d5], 1;", "ld.acquire.cta.shared.b32 %r10, [flag];"},
    };
    for (const Style& style : styles) {
        const std::string body =
            "@!%p0 bra NOT0; st.shared.b32 [%mine], 5; bar.warp.sync -1; setp.eq.u32 %p2, %lane, 0; @%p2 bra SET; bra "
            "SAME; SET:" +
            style.set + "SAME: bar.warp.sync -1; bra END; NOT0: @!%p1 bra END; WAIT: " + style.wait +
            " setp.eq.u32 %p3, %r10, 0; @%p3 bra WAIT; bar.warp.sync -1;" + read_neighbour + "END:";
        expect_clean(body);
    }
    expect_race(
        "@!%p0 bra NOT0; st.shared.b32 [%mine], 5; st.release.cta.shared.b32 [flag], 1; bra END; NOT0: @!%p1 bra "
        "END; " +
        read_neighbour + "END:");
}

TEST_CASE("atomics and volatile accesses do not race with each other")
{
    expect_clean(
        "atom.shared.add.u32 %r1, [s], 1; ld.volatile.shared.b32 %r2, [s]; st.relaxed.cta.shared.b32 [s], 5; "
        "red.shared.max.u32 [s], %r2;"
        "bar.sync 0; ld.shared.b32 %r3, [s];");
}

TEST_CASE("races between the CTAs of a cluster are reported")
{
    const std::string peer =
        "mov.u32 %r20, %cluster_ctarank; xor.b32 %r21, %r20, 1; mapa.shared::cluster.u32 %r22, %mine, %r21;";
    const std::string sync = "barrier.cluster.arrive; barrier.cluster.wait;";
    expect_clean(peer + "st.shared.b32 [%mine], 6;" + sync + "ld.shared::cluster.b32 %r23, [%r22];" + sync, 2);
    expect_race(peer + sync + "st.shared.b32 [%mine], 6; ld.shared::cluster.b32 %r23, [%r22];" + sync, 2);
    expect_race(peer + sync + "st.shared::cluster.b32 [%r22], 6; ld.shared.b32 %r23, [%mine];" + sync, 2);
    // A relaxed arrival passes nothing on.
    expect_clean(peer + sync + "st.shared::cluster.b32 [%r22], 6;" + sync + "ld.shared.b32 %r23, [%mine];", 2);
}

TEST_CASE("the finding names both accesses")
{
    const Warps run("@%p0 st.shared.b32 [s+20], 1; @%p1 ld.shared.b32 %r2, [s+20];");
    const auto findings = run.report.findings();
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].message.find("st.shared.b32") != std::string::npos);
    CHECK(findings[0].message.find("ld.shared.b32") != std::string::npos);
    CHECK(findings[0].message.find("0x414") != std::string::npos);
    CHECK(findings[0].ptx_text.find("ld.shared.b32") != std::string::npos);
}

}  // namespace tessera::emulator::test
