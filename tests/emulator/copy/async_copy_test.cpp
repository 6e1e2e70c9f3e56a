// cp.async on the machine: sizes, zero fill, groups, arrivals on mbarriers, and its findings.

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// Thread t copies 16 bytes from in + 16 t to data + 16 t, then executes `wait`; then each thread writes the 32-bit
/// word (t + shift) mod 4n of data.
std::string kernel(const std::string& copy, const std::string& wait, const std::string& target = "sm_80")
{
    return module_text(target, R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .pred p, q; .reg .b32 r<16>; .reg .b64 d<10>;
    .shared .align 16 .b8 data[4096];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [in];
    ld.param.u64 d1, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    setp.eq.u32 q, r0, 0;
    mul.wide.u32 d2, r0, 16;
    add.u64 d3, d0, d2;
    mad.lo.u32 r2, r0, 16, r1;
    )" + copy + wait + R"(
    mov.u32 r3, 0;
each:
    mad.lo.u32 r4, r3, 4, r2;
    ld.shared.u32 r5, [r4];
    mul.wide.u32 d4, r3, 4;
    add.u64 d5, d1, d2;
    add.u64 d5, d5, d4;
    st.global.u32 [d5], r5;
    add.u32 r3, r3, 1;
    setp.lt.u32 p, r3, 4;
    @p bra each;
    ret;
}
)");
}

struct Outcome {
    LaunchResult result;
    std::vector<std::uint32_t> values;
};

Outcome launch(PtxRun& run, std::uint32_t threads)
{
    std::vector<std::uint32_t> input(threads * 4 + 64);
    for (std::size_t i = 0; i < input.size(); ++i) {
        input[i] = static_cast<std::uint32_t>(0x01010101 * i + 7);
    }
    const std::uint64_t in = run.buffer(input);
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(threads * 4));
    Outcome outcome;
    outcome.result = run.launch("k", {.block = {threads, 1, 1}}, in, out);
    outcome.values = run.read<std::uint32_t>(out, threads * 4);
    return outcome;
}

std::uint32_t input_at(std::size_t i) { return static_cast<std::uint32_t>(0x01010101 * i + 7); }

}  // namespace

TEST_CASE("copies of 4, 8 and 16 bytes have arrived after a wait for their group")
{
    const std::vector<std::string> copies{
        "cp.async.cg.shared.global [r2], [d3], 16; ",
        "cp.async.ca.shared::cta.global.L2::128B [r2], [d3], 16; ",
        "cp.async.ca.shared.global [r2], [d3], 8; cp.async.ca.shared.global [r2+8], [d3+8], 8; ",
        "cp.async.ca.shared.global [r2], [d3], 4; cp.async.ca.shared.global [r2+4], [d3+4], 4; "
        "cp.async.ca.shared.global [r2+8], [d3+8], 4; cp.async.ca.shared.global [r2+12], [d3+12], 4; ",
        "mov.u64 d6, 0; cp.async.cg.shared.global.L2::cache_hint [r2], [d3], 16, d6; ",
        "mov.u64 d6, 0; mov.u32 r8, 16; cp.async.cg.shared.global.L2::cache_hint.L2::256B [r2], [d3], 16, r8, d6; ",
    };
    const std::vector<std::string> waits{"cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_all;"};
    for (const std::string& copy : copies) {
        for (const std::string& wait : waits) {
            CAPTURE(copy);
            under_every_schedule(
                kernel(copy, wait), "b200",
                [](PtxRun& run) {
                    const Outcome outcome = launch(run, 64);
                    REQUIRE_CLEAN(run, outcome.result);
                    for (std::size_t i = 0; i < 256; ++i) {
                        REQUIRE(outcome.values[i] == input_at(i));
                    }
                },
                3);
        }
    }
}

TEST_CASE("bytes beyond the source's size, and ignored sources, become zeros")
{
    // Thread t reads 4 (t mod 5) bytes. The second kernel ignores the source in every third thread.
    const std::string sized = "rem.u32 r8, r0, 5; mul.lo.u32 r8, r8, 4; cp.async.ca.shared.global [r2], [d3], 16, r8; ";
    const std::string ignored =
        "rem.u32 r8, r0, 3; setp.eq.u32 p, r8, 0; cp.async.cg.shared.global [r2], [d3], 16, p; ";
    under_every_schedule(
        kernel(sized, "cp.async.wait_all;"), "b200",
        [](PtxRun& run) {
            const Outcome outcome = launch(run, 32);
            REQUIRE_CLEAN(run, outcome.result);
            for (std::size_t i = 0; i < 128; ++i) {
                REQUIRE(outcome.values[i] == (i % 4 < i / 4 % 5 ? input_at(i) : 0));
            }
        },
        3);
    under_every_schedule(
        kernel(ignored, "cp.async.wait_all;"), "b200",
        [](PtxRun& run) {
            const Outcome outcome = launch(run, 32);
            REQUIRE_CLEAN(run, outcome.result);
            for (std::size_t i = 0; i < 128; ++i) {
                REQUIRE(outcome.values[i] == (i / 4 % 3 == 0 ? 0 : input_at(i)));
            }
        },
        3);
}

TEST_CASE("a source of no bytes may be any address")
{
    PtxRun run(
        kernel("mov.u32 r8, 0; mov.u64 d7, 16; cp.async.cg.shared.global [r2], [d7], 16, r8; ", "cp.async.wait_all;"));
    const Outcome outcome = launch(run, 32);
    REQUIRE_CLEAN(run, outcome.result);
    CHECK(outcome.values[0] == 0);
}

TEST_CASE("a read before the wait is reported at any timing, also after a wait for older groups")
{
    const std::string copy = "cp.async.cg.shared.global [r2], [d3], 16; ";
    for (const char* wait :
         {"", "cp.async.commit_group;", "cp.async.commit_group; cp.async.wait_group 1;", "cp.async.wait_group 0;",
          "cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 2;"}) {
        CAPTURE(wait);
        under_every_schedule(
            kernel(copy, wait), "b200",
            [](PtxRun& run) {
                launch(run, 32);
                INFO(findings_text(run));
                CHECK(run.count(FindingKind::async_read_pending) + run.count(FindingKind::shared_race) +
                          run.count(FindingKind::stage_overwritten) >
                      0);
            },
            3);
    }
}

TEST_CASE("a wait for another thread's copies also needs a barrier")
{
    const std::string copy =
        "cp.async.cg.shared.global [r2], [d3], 16; cp.async.wait_all; xor.b32 r9, r0, 32; "
        "mad.lo.u32 r2, r9, 16, r1; mul.wide.u32 d2, r9, 16; ";
    under_every_schedule(
        kernel(copy, "bar.sync 0;"), "b200",
        [](PtxRun& run) {
            const Outcome outcome = launch(run, 64);
            REQUIRE_CLEAN(run, outcome.result);
            for (std::size_t i = 0; i < 256; ++i) {
                REQUIRE(outcome.values[i] == input_at(i));
            }
        },
        3);
    PtxRun run(kernel(copy, ""));
    launch(run, 64);
    CHECK(run.report.total() > 0);
}

TEST_CASE("a pipeline of groups: the older half is complete, the younger may be pending")
{
    // Two stages: words 0-1 first, words 2-3 second. After wait_group 1 the first two words have arrived.
    const std::string copy =
        "cp.async.ca.shared.global [r2], [d3], 8; cp.async.commit_group; "
        "cp.async.ca.shared.global [r2+8], [d3+8], 8; cp.async.commit_group; cp.async.wait_group 1; "
        "ld.shared.u32 r9, [r2]; ld.shared.u32 r10, [r2+4]; cp.async.wait_group 0; st.shared.u32 [r2], r10; "
        "st.shared.u32 [r2+4], r9; ";
    under_every_schedule(
        kernel(copy, ""), "b200",
        [](PtxRun& run) {
            const Outcome outcome = launch(run, 32);
            REQUIRE_CLEAN(run, outcome.result);
            CHECK(outcome.values[0] == input_at(1));
            CHECK(outcome.values[1] == input_at(0));
            CHECK(outcome.values[3] == input_at(3));
        },
        6);
}

TEST_CASE("cp.async.mbarrier.arrive works with and without .noinc")
{
    const std::string copy = "cp.async.cg.shared.global [r2], [d3], 16; ";
    const std::string wait =
        "again: mbarrier.try_wait.parity.shared.b64 p, [bar], 0; @!p bra again;"
        "xor.b32 r9, r0, 32; mad.lo.u32 r2, r9, 16, r1; mul.wide.u32 d2, r9, 16; ";
    const std::string init = "@q mbarrier.init.shared.b64 [bar], 64; bar.sync 0;";
    for (const std::string& arrive :
         {std::string("cp.async.mbarrier.arrive.noinc.shared.b64 [bar];"),
          std::string("mov.u32 r10, bar; cvt.u64.u32 d8, r10; cvta.shared.u64 d8, d8; "
                      "cp.async.mbarrier.arrive.noinc.b64 [d8];"),
          std::string("cp.async.mbarrier.arrive.shared::cta.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar];")}) {
        CAPTURE(arrive);
        under_every_schedule(
            kernel(init + copy + arrive, wait, "sm_90"), "h200",
            [](PtxRun& run) {
                const Outcome outcome = launch(run, 64);
                REQUIRE_CLEAN(run, outcome.result);
                for (std::size_t i = 0; i < 256; ++i) {
                    REQUIRE(outcome.values[i] == input_at(i));
                }
            },
            5);
    }
}

TEST_CASE("faults and wrong operands are reported")
{
    const auto run_with = [](const std::string& copy, int code, FindingKind kind) {
        CAPTURE(copy);
        PtxRun run(kernel(copy, "cp.async.wait_all;"));
        CHECK(launch(run, 32).result.code == code);
        CHECK_FOUND(run, kind);
    };
    run_with("cp.async.cg.shared.global [r2+8], [d3], 16; ", 716, FindingKind::misaligned);
    run_with("cp.async.cg.shared.global [r2], [d3+4], 16; ", 716, FindingKind::misaligned);
    run_with("cp.async.cg.shared.global [r2+8192], [d3], 16; ", 700, FindingKind::out_of_bounds);
    run_with("mov.u64 d7, 0x1230; cp.async.cg.shared.global [r2], [d7], 16; ", 700, FindingKind::out_of_bounds);
    run_with("mov.u32 r8, 20; cp.async.cg.shared.global [r2], [d3], 16, r8; ", 0, FindingKind::invalid_operand);
    PtxRun run(kernel("cp.async.cg.shared.global [r2], [d3], 16; ", "cp.async.wait_all;"));
    const std::uint64_t in = run.uninitialized(1024);
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(128));
    CHECK(run.launch("k", {}, in, out).code == 0);
    CHECK_FOUND(run, FindingKind::uninitialized_global);
    for (const char* wrong :
         {"cp.async.cg.shared.global [r2], [d3], 8;", "cp.async.ca.shared.global [r2], [d3], 12;",
          "cp.async.ca.global.shared [d3], [r2];", "cp.async.wait_group r0;", "cp.async.cg.shared [r2], [d3], 16;"}) {
        CAPTURE(wrong);
        const PtxRun refused(kernel(wrong, ""));
        CHECK_FALSE(refused.module().find_kernel("k")->load_error.empty());
    }
}
