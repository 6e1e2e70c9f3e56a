// Findings that a loop reports again and again are only counted, and the counts are exact.

#include <doctest/doctest.h>

#include <string>

#include "../support/run_ptx.hpp"

namespace tessera::emulator::test {

namespace {

/// A kernel in which `body` runs `turns` times, with the turn in %i. %a and %b are its parameters.
std::string loop_kernel(unsigned turns, const std::string& body)
{
    return module_text("sm_100a", R"(
.visible .entry k(.param .u64 a, .param .u64 b)
{
    .reg .b32 %i, %r<9>, %thread, %warp; .reg .b64 %a, %b, %d<9>; .reg .pred %p<9>, %again;
    .local .align 4 .b8 never[8]; .shared .align 16 .b8 s[4096];
    ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; mov.u32 %thread, %tid.x; shr.u32 %warp, %thread, 5;
    mov.u32 %i, 0;
LOOP:
)" + body + "\n add.u32 %i, %i, 1; setp.lt.u32 %again, %i, " +
                                      std::to_string(turns) + "; @%again bra LOOP;\n ret;\n}");
}

struct Counted : PtxRun {
    Counted(const std::string& ptx, unsigned ctas, unsigned threads_per_cta, unsigned cpu_threads, bool strict = false)
        : PtxRun(ptx)
    {
        options.threads = cpu_threads;
        options.strict = strict;
        options.paths = Paths::fast;  // the plain path reports each lane for itself
        const std::uint64_t a = uninitialized(1024), b = uninitialized(1024);
        result = launch("k", {.grid = {ctas, 1, 1}, .block = {threads_per_cta, 1, 1}}, a, b);
    }
    LaunchResult result;
};

const std::string store = "st.global.b32 [%a+512], %r1;";
const std::string read_local = "ld.local.b32 %r1, [never];" + store;
// Even turns add to words of a, odd ones to words of b: two allocations, two findings.
const std::string add_to_two =
    "and.b32 %r2, %i, 1; setp.eq.u32 %p1, %r2, 0; selp.b64 %d1, %a, %b, %p1;"
    "mul.wide.u32 %d2, %i, 4; add.u64 %d1, %d1, %d2; atom.global.add.u32 %r1, [%d1], 1;";
// Both warps store to the same places, each turn to others.
const std::string race =
    "mov.b32 %r2, s; mad.lo.u32 %r2, %i, 4, %r2; add.u32 %r3, %warp, %i; st.shared.b32 [%r2], %r3;";

}  // namespace

TEST_CASE("an undefined value that a loop uses is one finding with an exact count, whatever the number of CPU threads")
{
    for (const unsigned cpu_threads : {1U, 2U, 5U}) {
        CAPTURE(cpu_threads);
        const Counted run(loop_kernel(100, read_local), 7, 32, cpu_threads);
        INFO(run.result.message);
        REQUIRE(run.result.code == 0);
        const std::vector<Finding> findings = run.report.findings();
        REQUIRE(findings.size() == 1);
        CHECK(findings[0].kind == FindingKind::uninitialized_local);
        CHECK(findings[0].count == 700);
        CHECK(findings[0].accesses == 700 * 32);
        CHECK(findings[0].ctas == 7);
        CHECK(findings[0].instructions == 1);
    }
}

TEST_CASE("one instruction that uses two allocations makes two findings, each with its count")
{
    const Counted run(loop_kernel(11, add_to_two), 1, 32, 1);
    INFO(run.result.message);
    REQUIRE(run.result.code == 0);
    const std::vector<Finding> findings = run.report.findings();
    REQUIRE(findings.size() == 2);
    CHECK(findings[0].count == 6);
    CHECK(findings[1].count == 5);
    CHECK(findings[0].cause != findings[1].cause);
    CHECK(findings[0].message != findings[1].message);
}

TEST_CASE("a race in a loop is one finding with an exact count")
{
    for (const unsigned cpu_threads : {1U, 2U}) {
        CAPTURE(cpu_threads);
        const Counted run(loop_kernel(50, race), 4, 64, cpu_threads);
        INFO(run.result.message, run.report.text());
        REQUIRE(run.result.code == 0);
        const std::vector<Finding> findings = run.report.findings();
        REQUIRE(findings.size() == 1);
        CHECK(findings[0].kind == FindingKind::shared_race);
        CHECK(findings[0].count == 4 * 50);
        CHECK(findings[0].accesses == 4 * 50 * 32);
        CHECK(findings[0].ctas == 4);
        CHECK(findings[0].message.find("PTX line") != std::string::npos);
    }
}

TEST_CASE("asynchronous work that races in a loop is one finding with an exact count")
{
    // No copy is known to be complete when the others write.
    const Counted run(
        loop_kernel(50, "mov.b32 %r2, s; setp.eq.u32 %p1, %thread, 0; @%p1 cp.async.ca.shared.global [%r2], [%a], 4;"),
        3, 32, 1);
    INFO(run.result.message, run.report.text());
    REQUIRE(run.result.code == 0);
    const std::vector<Finding> findings = run.report.findings();
    REQUIRE(findings.size() == 2);
    CHECK(findings[0].kind == FindingKind::stage_overwritten);
    CHECK(findings[0].count == 3 * 50);
    CHECK(findings[0].accesses == 3 * 50);
    CHECK(findings[0].ctas == 3);
    CHECK(findings[0].message.find("cp.async") != std::string::npos);
}

TEST_CASE("loads of what a bulk store has not written yet are one finding with an exact count")
{
    const Counted run(
        loop_kernel(
            50,
            "mov.b32 %r2, s; setp.ne.u32 %p1, %i, 0; @%p1 bra LOAD; st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3};"
            "fence.proxy.async; cp.async.bulk.global.shared::cta.bulk_group [%a], [%r2], 16;"
            "cp.async.bulk.commit_group;\nLOAD: ld.global.b32 %r4, [%a];"),
        2, 1, 1);
    INFO(run.result.message, run.report.text());
    REQUIRE(run.result.code == 0);
    const std::vector<Finding> findings = run.report.findings();
    std::uint64_t count = 0;
    for (const Finding& finding : findings) {
        count += finding.kind == FindingKind::async_read_pending ? finding.count : 0;
    }
    CHECK(count == 2 * 50);
}

TEST_CASE("strict: the first finding ends the launch with its message, also in a loop")
{
    const Counted run(loop_kernel(50, race), 1, 64, 1, true);
    CHECK(run.result.code != 0);
    CHECK(run.result.message.find("no barrier or other synchronization") != std::string::npos);
    CHECK(run.report.total() == 1);
}

TEST_CASE("a report that was cleared is not counted into by findings from before")
{
    Report report;
    Report::Known known;
    Finding finding;
    finding.kernel = "k";
    finding.ptx_line = 3;
    REQUIRE(report.add(finding, {}, &known));
    report.count(known, 5, 10);
    REQUIRE(report.findings().size() == 1);
    CHECK(report.findings()[0].count == 6);
    CHECK(report.findings()[0].accesses == 11);
    report.clear();
    finding.ptx_line = 4;
    REQUIRE(report.add(finding));
    report.count(known, 5, 10);
    CHECK(report.findings()[0].count == 1);
}

}  // namespace tessera::emulator::test
