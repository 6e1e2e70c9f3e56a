// mbarrier.try_wait and test_wait whose result nobody looks at: they order nothing, in every schedule.

#include "bulk_load.hpp"
#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// Thread 0 loads 256 bytes; each thread executes `wait` and reads its word.
std::string kernel(const std::string& wait)
{
    return module_text("sm_90a", R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .pred p, done, q; .reg .b32 r<12>; .reg .b64 d<6>;
    .shared .align 128 .b8 data[256];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [in];
    ld.param.u64 d1, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mov.u32 r2, bar;
    mov.u32 r8, 0;
    mad.lo.u32 r3, r0, 4, r1;
    mul.wide.u32 d2, r0, 4;
    add.u64 d2, d1, d2;
    setp.eq.u32 p, r0, 0;
    @p mbarrier.init.shared::cta.b64 [bar], 1;
    @p fence.mbarrier_init.release.cluster;
    bar.sync 0;
)" + issue(bulk_load(256), 256) + wait +
                                     R"(
    ld.shared.u32 r4, [r3];
    st.global.u32 [d2], r4;
    bar.sync 0;
    ret;
}
)");
}

LaunchResult launch(PtxRun& run)
{
    const std::uint64_t in = run.buffer(std::vector<std::uint32_t>(64, 7));
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(64));
    return run.launch("k", {.block = {64, 1, 1}}, in, out);
}

const std::string try_wait = "    mbarrier.try_wait.parity.shared::cta.b64 done, [bar], 0;\n";

}  // namespace

TEST_CASE("a wait whose result is not tested is no wait")
{
    for (const std::string& wait :
         {try_wait, std::string("    mbarrier.test_wait.parity.shared::cta.b64 done, [bar], 0;\n"),
          try_wait + try_wait,                          // the second time, too
          try_wait + "    selp.u32 r5, 1, 0, done;\n",  // what a discarded bool becomes
          try_wait + "    selp.u32 r5, 1, 0, done;\n    add.u32 r5, r5, r0;\n    setp.ne.u32 q, r5, 0;\n",
          try_wait + "    setp.eq.u32 done, r0, 99;\n    @done bra issued;\n"}) {  // overwritten before the test
        CAPTURE(wait);
        under_every_schedule(kernel(wait), "h200", [](PtxRun& run) {
            REQUIRE(launch(run).code == 0);
            INFO(findings_text(run));
            CHECK(run.count(FindingKind::async_read_pending) + run.count(FindingKind::stage_overwritten) > 0);
            CHECK(run.report.findings().front().ptx_text.find("ld.shared.u32") != std::string::npos);
        });
    }
}

TEST_CASE("a wait whose result decides something is one")
{
    for (const std::string& wait :
         {"again:\n" + try_wait + "    @!done bra again;\n",
          try_wait + "    @done bra waited;\nagain:\n" + try_wait + "    @!done bra again;\nwaited:\n",
          "again:\n" + try_wait + "    selp.u32 r5, 1, 0, done;\n    setp.eq.u32 q, r5, 0;\n    @q bra again;\n",
          // a hint first, then the loop
          try_wait + "again:\n    mbarrier.test_wait.parity.shared::cta.b64 q, [bar], 0;\n    @!q bra again;\n",
          // the result goes around the loop in another register
          "    mov.u32 r5, 0;\nagain:\n    setp.ne.u32 q, r5, 0;\n    @q bra waited;\n" + try_wait +
              "    selp.u32 r5, 1, 0, done;\n    bra again;\nwaited:\n",
          "again:\n" + try_wait + "    not.pred q, done;\n    @q bra again;\n"}) {
        CAPTURE(wait);
        under_every_schedule(kernel(wait), "h200", [](PtxRun& run) {
            const LaunchResult result = launch(run);
            REQUIRE_CLEAN(run, result);
        });
    }
}
