// What one lane has waited for, the other lanes of its warp do not know; what one lane tells others does not contain what
// the other lanes did: __syncwarp() is missing after the wait, or before the arrival.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../support/run_ptx.hpp"
#include "../support/schedules.hpp"

namespace tessera::emulator::test {

namespace {

/// Two warps, 1024 bytes of shared memory s that are zero, 256 bytes of global memory at %data, the mbarrier `full` for one
/// arrival, a `flag` of 0. %mine is the lane's own word, %next that of the next lane. %p1 is set in warp 1, %first in the
/// first lane of each warp.
std::string two_warps(const std::string& body)
{
    return module_text("sm_100a", R"(
.visible .entry k(.param .u64 data)
{
    .reg .b32 %r<30>, %lane, %mine, %next, %base; .reg .pred %p<9>, %first, %ready;
    .reg .b64 %data, %from, %d<9>; .shared .align 16 .b8 s[1024]; .shared .align 8 .b64 full; .shared .b32 flag;
    ld.param.u64 %data, [data]; mov.u32 %lane, %laneid; mov.u32 %base, s;
    mad.lo.u32 %mine, %lane, 4, %base; mad.wide.u32 %from, %lane, 4, %data;
    add.u32 %r28, %lane, 1; and.b32 %r28, %r28, 31; mad.lo.u32 %next, %r28, 4, %base;
    setp.eq.u32 %first, %lane, 0; mov.u32 %r28, %tid.x; setp.ge.u32 %p1, %r28, 32;
    mad.lo.u32 %r28, %r28, 16, %base; st.shared.v4.b32 [%r28], {0, 0, 0, 0};
    fence.proxy.async; mov.u32 %r28, %tid.x; setp.ne.u32 %p2, %r28, 0; @%p2 bra READY;
    mbarrier.init.shared.b64 [full], 1; st.shared.b32 [flag], 0; fence.mbarrier_init.release.cluster;
READY: bar.sync 0;
)" + body + "\n ret;\n}");
}

void expect_finding(FindingKind kind, const std::string& body, std::string_view instruction, std::string_view part)
{
    CAPTURE(body);
    under_every_schedule(
        two_warps(body), "b200",
        [&](PtxRun& run) {
            const LaunchResult result =
                run.launch("k", {.block = {64, 1, 1}}, run.buffer(std::vector<std::uint32_t>(64, 5)));
            INFO(result.message, findings_text(run));
            REQUIRE(result.code == 0);
            REQUIRE(run.report.findings().size() == 1);
            const Finding finding = run.report.findings()[0];
            CHECK(finding.kind == kind);
            CHECK(finding.ptx_text.find(instruction) != std::string::npos);
            CHECK(finding.message.find(part) != std::string::npos);
        },
        4);
}

void expect_clean(const std::string& body)
{
    CAPTURE(body);
    under_every_schedule(
        two_warps(body), "b200",
        [&](PtxRun& run) {
            const LaunchResult result =
                run.launch("k", {.block = {64, 1, 1}}, run.buffer(std::vector<std::uint32_t>(64, 5)));
            REQUIRE_CLEAN(run, result);
        },
        4);
}

const std::string sync = "bar.warp.sync 0xffffffff;";
const std::string warp_0 = "@%p1 ret;", load_next = "ld.shared.b32 %r1, [%next];";
const std::string after_wait = "only other lanes of the warp have waited for it";
const std::string before_arrival = "has not synchronized since, only other lanes of its warp have";

std::string wait_for(const std::string& label)
{
    return label + ": mbarrier.try_wait.parity.shared.b64 %ready, [full], 0; @!%ready bra " + label + ";";
}

/// Lane 0 of warp 0 copies 128 bytes to s, and arrives.
const std::string bulk_load =
    "@!%first bra LOADED; mbarrier.arrive.expect_tx.shared.b64 _, [full], 128;"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%base], [%data], 128, [full];\nLOADED:";

}  // namespace

TEST_CASE("one lane waits for an mbarrier, and the others read what the copy wrote")
{
    const std::string first_waits = warp_0 + bulk_load + "@!%first bra WAITED;\n" + wait_for("AGAIN") + "\nWAITED:";
    expect_finding(FindingKind::async_read_pending, first_waits + load_next, "ld.shared", after_wait);
    expect_finding(FindingKind::async_read_pending,
                   first_waits + "shfl.sync.idx.b32 %r5, %lane, 0, 31, 0xffffffff;" + load_next, "ld.shared",
                   after_wait);
    expect_finding(FindingKind::stage_overwritten, first_waits + "st.shared.b32 [%mine], 7;", "st.shared", after_wait);
    expect_clean(first_waits + sync + load_next);
    expect_clean(first_waits + "@%first ld.shared.b32 %r1, [%next];");
    expect_clean(warp_0 + bulk_load + "\n" + wait_for("AGAIN") + load_next);
    // A barrier of the CTA is more than enough, and so is a second wait of all lanes.
    expect_clean("@%p1 bra WAITED;" + bulk_load + "@!%first bra WAITED;\n" + wait_for("AGAIN") +
                 "\nWAITED: bar.sync 0;" + load_next);
    expect_clean(first_waits + "\n" + wait_for("MORE") + load_next);
}

TEST_CASE("one lane reads a flag that another warp has set, and the others read the data")
{
    const std::string other_warp = "@!%p1 bra CONSUME; st.shared.b32 [%mine], 7;" + sync +
                                   "@%first st.release.cta.shared.b32 [flag], 1; ret;\nCONSUME:";
    const std::string poll = "AGAIN: ld.acquire.cta.shared.b32 %r2, [flag]; setp.eq.u32 %p3, %r2, 0; @%p3 bra AGAIN;";
    const std::string first_polls = other_warp + "@!%first bra WAITED;\n" + poll + "\nWAITED:";
    expect_finding(FindingKind::shared_race, first_polls + load_next, "ld.shared", after_wait);
    expect_clean(first_polls + sync + load_next);
    expect_clean(other_warp + "\n" + poll + load_next);
}

TEST_CASE("one lane waits until its bulk store has read shared memory, and the others overwrite it")
{
    const std::string store = warp_0 +
                              "@!%first bra STORED; cp.async.bulk.global.shared::cta.bulk_group [%data], [%base], 128;"
                              "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\nSTORED:";
    expect_finding(FindingKind::stage_overwritten, store + "st.shared.b32 [%mine], 7;", "st.shared", after_wait);
    expect_clean(store + sync + "st.shared.b32 [%mine], 7;");
    expect_clean(store + "@%first st.shared.b32 [%mine], 7;");
}

TEST_CASE("one lane arrives for what the other lanes wrote")
{
    const std::string write = "@%p1 bra CONSUME; st.shared.b32 [%mine], 7;";
    const std::string arrive = "@%first mbarrier.arrive.shared.b64 _, [full]; ret;\nCONSUME:\n" + wait_for("AGAIN");
    expect_finding(FindingKind::shared_race, write + arrive + load_next, "ld.shared", before_arrival);
    expect_finding(FindingKind::shared_race, write + arrive + "st.shared.b32 [%mine], 8;", "st.shared", before_arrival);
    expect_clean(write + sync + arrive + load_next);
    expect_clean(write + arrive + "@%first ld.shared.b32 %r1, [%base];");
    // All lanes tell it later, in another way.
    expect_clean(write + "@%first mbarrier.arrive.shared.b64 _, [full]; bar.sync 1; ret;\nCONSUME:\n" +
                 wait_for("AGAIN") + "bar.sync 1;" + load_next);
    // A wrong lane's store, and a right one's.
    expect_finding(FindingKind::shared_race, write + sync + "st.shared.b32 [%next], 9;" + arrive + load_next,
                   "ld.shared", before_arrival);
}

TEST_CASE("one lane sets a flag for what the other lanes wrote")
{
    const std::string write = "@%p1 bra CONSUME; st.shared.b32 [%mine], 7;";
    const std::string flag =
        "@!%first bra SET; st.release.cta.shared.b32 [flag], 1;\nSET: ret;\nCONSUME:\n"
        "AGAIN: ld.acquire.cta.shared.b32 %r2, [flag]; setp.eq.u32 %p3, %r2, 0; @%p3 bra AGAIN;";
    expect_finding(FindingKind::shared_race, write + flag + load_next, "ld.shared", before_arrival);
    expect_clean(write + sync + flag + load_next);
    // A fence by all lanes releases what each of them did, and a relaxed store passes it on.
    const std::string relaxed =
        "@!%first bra SET; fence.acq_rel.cta; st.relaxed.cta.shared.b32 [flag], 1;\nSET: ret;\nCONSUME:\n"
        "AGAIN: ld.acquire.cta.shared.b32 %r2, [flag]; setp.eq.u32 %p3, %r2, 0; @%p3 bra AGAIN;";
    expect_finding(FindingKind::shared_race, write + relaxed + load_next, "ld.shared", before_arrival);
    expect_clean(write + sync + relaxed + load_next);
}

TEST_CASE("one lane stores with TMA what the other lanes wrote")
{
    const std::string write = warp_0 + "st.shared.b32 [%mine], 7; fence.proxy.async;";
    const std::string store =
        "@!%first bra STORED; cp.async.bulk.global.shared::cta.bulk_group [%data], [%base], 128;"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nSTORED:";
    expect_finding(FindingKind::shared_race, write + store, "cp.async.bulk.global", before_arrival);
    expect_clean(write + sync + store);
}

TEST_CASE("each lane copies with cp.async, and reads what another lane has copied")
{
    const std::string copy = warp_0 + "cp.async.ca.shared.global [%mine], [%from], 4;";
    for (const std::string wait : {"cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;"}) {
        expect_finding(FindingKind::async_read_pending, copy + wait + load_next, "ld.shared", after_wait);
        expect_finding(FindingKind::stage_overwritten, copy + wait + "st.shared.b32 [%next], 7;", "st.shared",
                       after_wait);
        expect_clean(copy + wait + sync + load_next);
        expect_clean(copy + wait + "ld.shared.b32 %r1, [%mine];");
    }
    // A wait of one lane is not one for the others' copies, whatever comes then.
    expect_finding(FindingKind::async_read_pending,
                   copy + "@!%first bra WAITED; cp.async.wait_all;\nWAITED:" + sync +
                       "setp.ne.u32 %p5, %lane, 31; @%p5 ld.shared.b32 %r1, [%next];",
                   "ld.shared", before_arrival);
    // So it is for all warps after a barrier.
    const std::string one_waits =
        "@%p1 bra WAITED; cp.async.ca.shared.global [%mine], [%from], 4; @!%first bra WAITED; cp.async.wait_all;\n"
        "WAITED: ";
    expect_finding(FindingKind::async_read_pending, one_waits + "bar.sync 0; @!%p1 ret;" + load_next, "ld.shared",
                   before_arrival);
    expect_clean(one_waits + "cp.async.wait_all; bar.sync 0;" + load_next);
    // Each lane arrives when its own copies are complete.
    const std::string arrivals =
        "@!%first bra MANY; mbarrier.inval.shared.b64 [full]; "
        "mbarrier.init.shared.b64 [full], 32;\nMANY: bar.warp.sync 0xffffffff;";
    expect_clean(warp_0 + arrivals +
                 "cp.async.ca.shared.global [%mine], [%from], 4;"
                 "cp.async.mbarrier.arrive.noinc.shared.b64 [full];\n" +
                 wait_for("AGAIN") + load_next);
}

TEST_CASE("lanes that copy and wait apart from each other tell the other warps of all their copies")
{
    // Lane 0, lane 1 and the other 30. Once two lanes have waited alone, each lane of the warp lacks what another knows.
    const std::string copy = "cp.async.ca.shared.global [%mine], [%from], 4;";
    const std::string copies =
        "@%p1 bra WAITED; setp.eq.u32 %p5, %lane, 1; setp.gt.u32 %p6, %lane, 1; setp.gt.u32 %p7, %lane, 15;"
        "@%first " +
        copy + "@%p5 " + copy + "@%p6 " + copy + "@%first cp.async.wait_all; @%p5 cp.async.wait_all;";
    const std::string barrier = "\nWAITED: bar.sync 0; @!%p1 ret;" + load_next;
    expect_clean(copies + "@%p6 cp.async.wait_all;" + barrier);
    expect_clean(copies + "@%p7 cp.async.wait_all; @%p6 cp.async.wait_all;" + barrier);
    expect_finding(FindingKind::async_read_pending, copies + "@%p7 cp.async.wait_all;" + barrier, "ld.shared",
                   before_arrival);
}

TEST_CASE("one lane arrives for what all lanes have copied with cp.async")
{
    const std::string copy = "@%p1 bra CONSUME; cp.async.ca.shared.global [%mine], [%from], 4; cp.async.wait_all;";
    const std::string arrive = "@%first mbarrier.arrive.shared.b64 _, [full]; ret;\nCONSUME:\n" + wait_for("AGAIN");
    expect_finding(FindingKind::async_read_pending, copy + arrive + load_next, "ld.shared", before_arrival);
    expect_clean(copy + sync + arrive + load_next);
}

}  // namespace tessera::emulator::test
