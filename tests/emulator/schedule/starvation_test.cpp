// One operation at a time starves in the adversarial schedule, so later ones overtake it.

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

const std::string overtaken = module_text("sm_90", R"(
// A thread starts a copy, waits for twelve others that follow it, one after the other, and tells whether the first is still
// under way.
.visible .entry overtaken(.param .u64 in, .param .u64 out)
{
    .reg .pred p, q; .reg .b32 r<12>; .reg .b64 d<4>;
    .shared .align 128 .b8 data[32];
    .shared .align 8 .b64 first;
    .shared .align 8 .b64 others;
    ld.param.u64 d0, [in];
    ld.param.u64 d1, [out];
    mov.u32 r0, data;
    add.u32 r1, r0, 16;
    mov.u32 r2, first;
    mov.u32 r3, others;
    mbarrier.init.shared::cta.b64 [r2], 1;
    mbarrier.init.shared::cta.b64 [r3], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [r2], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r0], [d0], 16, [r2];
    mov.u32 r5, 0;
next:
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [r3], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d0], 16, [r3];
    and.b32 r6, r5, 1;
again:
    mbarrier.try_wait.parity.shared::cta.b64 p, [r3], r6;
    @!p bra again;
    add.u32 r5, r5, 1;
    setp.lt.u32 p, r5, 12;
    @p bra next;
    mbarrier.test_wait.parity.shared::cta.b64 q, [r2], 0;
    selp.u32 r7, 0, 1, q;
    st.global.u32 [d1], r7;
last:
    mbarrier.try_wait.parity.shared::cta.b64 p, [r2], 0;
    @!p bra last;
    ret;
}
)");

/// Returns in how many of 60 seeds all other copies overtake the first.
unsigned times_overtaken(Schedule schedule)
{
    unsigned times = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        PtxRun run(overtaken, "h200");
        run.options.schedule = schedule;
        run.options.seed = seed;
        const std::uint64_t in = run.buffer(std::vector<std::uint32_t>(4)),
                            out = run.buffer(std::vector<std::uint32_t>(1));
        const LaunchResult result = run.launch("overtaken", {.block = {1, 1, 1}}, in, out);
        REQUIRE_CLEAN(run, result);
        times += run.read<std::uint32_t>(out, 1)[0];
    }
    return times;
}

}  // namespace

TEST_CASE("in the adversarial schedule, many later copies overtake one")
{
    CHECK(times_overtaken(Schedule::in_order) == 0);
    CHECK(times_overtaken(Schedule::adversarial) >= 10);
}
