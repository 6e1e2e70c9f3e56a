// Races in shared memory between the lanes of one warp.

#include <doctest/doctest.h>

#include <string>

#include "../support/run_ptx.hpp"
#include "../support/schedules.hpp"

namespace tessera::emulator::test {

namespace {

/// One warp and 1024 bytes of shared memory s, which it has zeroed. %mine is the address of the lane's own word, %next
/// that of the next lane's, %far that of the lane 16 further.
std::string lanes(const std::string& body)
{
    return module_text("sm_100a", R"(
.visible .entry k()
{
    .reg .b32 %r<30>, %lane, %mine, %next, %far, %base; .reg .pred %p<9>, %first, %lower;
    .reg .b64 %d<9>; .shared .align 16 .b8 s[1024];
    mov.u32 %lane, %tid.x; mov.u32 %base, s;
    mad.lo.u32 %mine, %lane, 4, %base;
    add.u32 %r28, %lane, 1; and.b32 %r28, %r28, 31; mad.lo.u32 %next, %r28, 4, %base;
    xor.b32 %r28, %lane, 16; mad.lo.u32 %far, %r28, 4, %base;
    setp.eq.u32 %first, %lane, 0; setp.lt.u32 %lower, %lane, 16;
    st.shared.b32 [%mine], 0; st.shared.b32 [%mine+128], 0; st.shared.b32 [%mine+256], 0;
    bar.sync 0;
)" + body + "\n ret;\n}");
}

void expect_race(const std::string& body, std::string_view part = "of the same warp")
{
    CAPTURE(body);
    under_every_schedule(
        lanes(body), "b200",
        [&](PtxRun& run) {
            const LaunchResult result = run.launch("k", {});
            INFO(result.message, findings_text(run));
            REQUIRE(result.code == 0);
            REQUIRE(run.report.findings().size() == 1);
            const Finding finding = run.report.findings().front();
            CHECK(finding.kind == FindingKind::shared_race);
            CHECK(finding.message.find(part) != std::string::npos);
            // Paths::plain checks each lane's access, the fast paths check a warp's as a whole.
            CHECK((finding.count == 1 || run.options.paths == Paths::plain));
        },
        3);
}

void expect_clean(const std::string& body)
{
    CAPTURE(body);
    under_every_schedule(
        lanes(body), "b200",
        [&](PtxRun& run) {
            const LaunchResult result = run.launch("k", {});
            REQUIRE_CLEAN(run, result);
        },
        3);
}

const std::string store = "st.shared.b32 [%mine], %lane;";
const std::string load_next = "ld.shared.b32 %r1, [%next];";

}  // namespace

TEST_CASE("a lane that reads what another lane wrote needs bar.warp.sync or more in between")
{
    expect_race(store + load_next,
                "ld.shared.b32 (lane 0 of warp 0 of the cluster) reads shared 0x404, but "
                "st.shared.b32 (lane 1 of the same warp, PTX line ");
    expect_clean(store + "bar.warp.sync 0xffffffff;" + load_next);
    expect_clean(store + "bar.sync 0;" + load_next);
    expect_clean(store + "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" + load_next);
    expect_clean(store + "ld.shared.b32 %r1, [%mine];");
    expect_clean("ld.shared.b32 %r1, [%mine]; ld.shared.b32 %r2, [%next];");
}

TEST_CASE("shuffles, votes and other .sync instructions do not order memory")
{
    for (const char* const sync :
         {"shfl.sync.idx.b32 %r5, %lane, 0, 31, 0xffffffff;", "vote.sync.ballot.b32 %r5, %first, 0xffffffff;",
          "redux.sync.add.u32 %r5, %lane, 0xffffffff;", "match.any.sync.b32 %r5, %lane, 0xffffffff;"}) {
        expect_race(store + sync + load_next);
        expect_clean(store + sync + "bar.warp.sync 0xffffffff;" + load_next);
    }
}

TEST_CASE("the last steps of a reduction without __syncwarp")
{
    const auto step = [](unsigned width) {
        return "ld.shared.b32 %r1, [%mine]; ld.shared.b32 %r2, [%mine+" + std::to_string(4 * width) +
               "]; add.u32 %r1, %r1, %r2;";
    };
    const std::string put = "st.shared.b32 [%mine], %r1;", sync = "bar.warp.sync 0xffffffff;";
    expect_race(step(32) + put + step(16) + put);
    expect_clean(step(32) + put + sync + step(16) + sync + put + sync + step(8) + sync + put);
    // Volatile accesses are strong: they do not race.
    const std::string read = "ld.volatile.shared.b32 %r1, [%mine]; ld.volatile.shared.b32 %r2, [%mine+64];";
    expect_clean("st.volatile.shared.b32 [%mine], %lane;" + read + "st.volatile.shared.b32 [%mine], %r2;" + read);
}

TEST_CASE("one lane writes and the others read, and the reverse")
{
    expect_race("@%first st.shared.b32 [%base], 7; ld.shared.b32 %r1, [%base];",
                "(lane 1 of warp 0 of the cluster) reads");
    expect_clean("@%first st.shared.b32 [%base], 7; bar.warp.sync 0xffffffff; ld.shared.b32 %r1, [%base];");
    expect_race("@!%first bra JOIN; st.shared.b32 [%base], 7;\nJOIN: ld.shared.b32 %r1, [%base];");
    expect_race(store + "@%first ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%base];", "(lane 1 of the same warp");
    expect_clean(store + "@%first ld.shared.b32 %r1, [%base];");
}

TEST_CASE("the second of two stores of different values to one place")
{
    expect_race("st.shared.b32 [%mine], 1; st.shared.b32 [%next], %lane;", "writes");
    expect_clean("st.shared.b32 [%mine], 1; bar.warp.sync 0xffffffff; st.shared.b32 [%next], %lane;");
    expect_clean("st.shared.b32 [%mine], 1; st.shared.b32 [%next], 1;");
    // One instruction, for which PTX leaves open who is last, also if a branch separates its lanes.
    expect_clean("st.shared.b32 [%base], %lane;");
    expect_clean(
        "mov.u32 %r1, 0; @%lower bra TWICE; mov.u32 %r1, 1;\n"
        "TWICE: st.shared.b32 [%base], %lane;");
}

TEST_CASE("a store over what another lane has read, while the lanes have not waited for each other")
{
    const std::string read = load_next, write = "st.shared.b32 [%mine], 7;";
    expect_race(
        read + write,
        "st.shared.b32 (lane 0 of warp 0 of the cluster) writes shared 0x400, but ld.shared.b32 (lane 31 of the "
        "same warp, PTX line ");
    for (const char* const sync :
         {"bar.warp.sync 0xffffffff;", "bar.sync 0;", "shfl.sync.idx.b32 %r5, %r1, 0, 31, 0xffffffff;",
          "vote.sync.ballot.b32 %r5, %first, 0xffffffff;"}) {
        expect_clean(read + sync + write);
    }
    expect_clean("ld.shared.b32 %r1, [%mine];" + write);
    // The same value as before, and other bytes of the word.
    expect_clean(load_next + "st.shared.b32 [%mine], 0;");
    const std::string byte =
        "shr.u32 %r7, %lane, 1; shl.b32 %r7, %r7, 2; and.b32 %r8, %lane, 1; shl.b32 %r8, %r8, 1;"
        "add.u32 %r7, %r7, %r8; add.u32 %r7, %r7, %base; ld.shared.u16 %r1, [%r7];";
    expect_clean(byte + "st.shared.u16 [%r7], 7;");
    expect_race(byte + "xor.b32 %r7, %r7, 2; st.shared.u16 [%r7], 7;", "read it");
    // Of a branch's two sides, and many reads before.
    expect_race("@%lower bra OTHERS; ld.shared.b32 %r1, [%far]; bra END;\nOTHERS: st.shared.b32 [%mine], 7;\nEND:",
                "of the same warp");
    std::string reads = load_next;
    for (unsigned i = 0; i < 12; ++i) {
        reads += "ld.shared.b32 %r2, [%mine+" + std::to_string(128 + 4 * i) + "];";
    }
    expect_race(reads + "st.shared.b32 [%mine], 7;", "read it");
    // Volatile accesses are strong.
    expect_clean("ld.volatile.shared.b32 %r1, [%next]; st.volatile.shared.b32 [%mine], 7;");
}

TEST_CASE("bar.warp.sync of some lanes orders these, and passes on what they know")
{
    const std::string pairs =
        "and.b32 %r20, %lane, 0x0F; mov.u32 %r21, 0x00010001; shl.b32 %r21, %r21, %r20;"
        "bar.warp.sync %r21;";
    expect_clean(store + pairs + "ld.shared.b32 %r1, [%far];");
    expect_race(store + pairs + load_next);
    const std::string lower = "@!%lower bra OTHERS; bar.warp.sync 0x0000ffff;\nOTHERS: ";
    expect_race(store + lower + "ld.shared.b32 %r1, [%far];");
    // Lane 0 knows lane 16 from the first, and lane 1 learns it from lane 0 in the second.
    const std::string chain = pairs +
                              "setp.lt.u32 %p2, %lane, 2; @!%p2 bra REST; bar.warp.sync 3;\nREST: "
                              "setp.eq.u32 %p3, %lane, 1;";
    expect_clean(store + chain + "@%p3 ld.shared.b32 %r1, [%base+64];");
    expect_race(store + chain + "@%p3 ld.shared.b32 %r1, [%base+72];");
}

TEST_CASE("atomics and a lock order the lanes of a warp")
{
    expect_clean("atom.shared.add.u32 %r1, [%base], 1; atom.shared.add.u32 %r1, [%base], 1;");
    expect_clean(R"(
    mov.u32 %r2, 0;
TRY: atom.shared.cas.b32 %r3, [%base+128], 0, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra AGAIN;
    membar.cta; ld.shared.b32 %r4, [%base]; add.u32 %r4, %r4, 1; st.shared.b32 [%base], %r4; membar.cta;
    atom.shared.exch.b32 %r5, [%base+128], 0; mov.u32 %r2, 1;
AGAIN: setp.eq.u32 %p3, %r2, 0; @%p3 bra TRY;
)");
}

}  // namespace tessera::emulator::test
