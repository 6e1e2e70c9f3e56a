// clusterlaunchcontrol and griddepcontrol: each cluster's work is done exactly once, by whichever cluster.

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// A persistent kernel: every CTA adds 1 to out[its linear ctaid], requests another cluster, and continues with it.
/// `request` issues the request; `full` and `before_reuse` are the waits of a correct program.
std::string persistent(const std::string& request, const std::string& before_reuse = "fence.proxy.async.shared::cta;",
                       const std::string& on_failure = "bra done;")
{
    return module_text("sm_100a", R"(
.visible .entry k(.param .u64 out)
{
    .reg .pred p, q, c; .reg .b32 r<30>; .reg .b64 d<6>; .reg .b128 h;
    .shared .align 16 .b8 response[16];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, response;
    mov.u32 r2, bar;
    mov.u32 r3, %cluster_ctarank;
    mov.u32 r10, %ctaid.x;
    mov.u32 r11, %ctaid.y;
    mov.u32 r12, %ctaid.z;
    mov.u32 r20, %cluster_ctaid.x;
    mov.u32 r21, %cluster_ctaid.y;
    mov.u32 r22, %nctaid.x;
    mov.u32 r23, %nctaid.y;
    mov.u32 r9, 0;
    setp.eq.u32 q, r0, 0;
    @q mbarrier.init.shared::cta.b64 [bar], 1;
    @q fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive;
    barrier.cluster.wait;
loop:
    @!q bra requested;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    )" + request + R"(
requested:
    // the work
    mad.lo.u32 r13, r12, r23, r11;
    mad.lo.u32 r13, r13, r22, r10;
    mul.wide.u32 d1, r13, 4;
    add.u64 d1, d0, d1;
    @q red.global.add.u32 [d1], 1;
again:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [bar], r9;
    @!p bra again;
    xor.b32 r9, r9, 1;
    ld.shared.b128 h, [response];
    )" + before_reuse + R"(
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 c, h;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    @c bra more;
    )" + on_failure + R"(
more:
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {r10, r11, r12, _}, h;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 r14, h;
    setp.ne.u32 p, r14, r11;
    @p trap;
    add.u32 r10, r10, r20;
    add.u32 r11, r11, r21;
    bra loop;
done:
    ret;
}
)");
}

const std::string alone =
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [r1], [r2];";
const std::string multicast = R"(
    setp.ne.u32 p, r3, 0;
    @p bra requested;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [r1], [r2];
)";

}  // namespace

TEST_CASE("the work of every CTA is done exactly once")
{
    under_every_schedule(persistent(alone), "b200", [](PtxRun& run) {
        const Shape shape{.grid = {30, 11, 2}, .block = {64, 1, 1}};
        const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(660));
        const LaunchResult result = run.launch("k", shape, out);
        REQUIRE_CLEAN(run, result);
        for (const std::uint32_t value : run.read<std::uint32_t>(out, 660)) {
            REQUIRE(value == 1);
        }
    });
}

TEST_CASE("a cluster takes over whole clusters: the response goes to each of its CTAs")
{
    under_every_schedule(persistent(multicast), "b200", [](PtxRun& run) {
        const Shape shape{.grid = {40, 12, 1}, .block = {32, 1, 1}, .cluster = {2, 2, 1}};
        const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(480));
        const LaunchResult result = run.launch("k", shape, out);
        REQUIRE_CLEAN(run, result);
        for (const std::uint32_t value : run.read<std::uint32_t>(out, 480)) {
            REQUIRE(value == 1);
        }
    });
}

TEST_CASE("requests succeed: with more CTAs than the device holds, some are taken over")
{
    // Counts successes at out[660].
    const std::string counting =
        persistent(alone,
                   "fence.proxy.async.shared::cta; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 c, h; "
                   "@!q bra counted; @c red.global.add.u32 [d0+40000], 1; counted:");
    PtxRun run(counting, "b200");
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(10001));
    const LaunchResult result = run.launch("k", {.grid = {10000, 1, 1}, .block = {32, 1, 1}}, out);
    REQUIRE_CLEAN(run, result);
    const auto values = run.read<std::uint32_t>(out, 10001);
    CHECK(values[10000] > 0);
    CHECK(values[10000] < 10000);
}

TEST_CASE("clusters that are resident together on a GPU may wait for each other")
{
    // Each CTA sets a flag and waits for the next one's. None has anything to cancel then. `ask`: 0, so none asks.
    const std::string ring = module_text("sm_100a", R"(
.visible .entry k(.param .u64 flags, .param .u32 ask)
{
    .reg .pred p; .reg .b32 r<10>; .reg .b64 d<4>;
    .shared .align 16 .b8 response[16];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [flags];
    ld.param.u32 r0, [ask];
    mov.u32 r1, %ctaid.x;
    mov.u32 r2, %nctaid.x;
    mul.wide.u32 d1, r1, 4;
    add.u64 d1, d0, d1;
    st.release.gpu.global.u32 [d1], 1;
    add.u32 r3, r1, 1;
    rem.u32 r3, r3, r2;
    mul.wide.u32 d1, r3, 4;
    add.u64 d1, d0, d1;
poll:
    ld.acquire.gpu.global.u32 r4, [d1];
    setp.eq.u32 p, r4, 0;
    @p bra poll;
    setp.eq.u32 p, r0, 0;
    @p bra done;
    mov.u32 r5, response;
    mov.u32 r6, bar;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [r5], [r6];
done:
    ret;
}

.visible .entry other(.param .u64 flags)
{
    ret;
}
)");
    under_every_schedule(ring, "b200", [](PtxRun& run) {
        CHECK(run.module().find_kernel("k")->uses_launch_control);
        CHECK(!run.module().find_kernel("other")->uses_launch_control);
        for (const bool cooperative : {false, true}) {
            const std::uint64_t flags = run.buffer(std::vector<std::uint32_t>(40));
            const Shape shape{.grid = {40, 1, 1}, .block = {32, 1, 1}, .cooperative = cooperative};
            const LaunchResult result = run.launch("k", shape, flags, std::uint32_t{0});
            REQUIRE_CLEAN(run, result);
            CHECK(result.statistics.ctas == 40);
        }
    });
}

TEST_CASE("a next request that overwrites the response before all have read it is reported")
{
    // (a warp that is overtaken by two phases waits for ever) the threads do not meet between reading the response and
    // asking again
    std::string ptx = persistent(alone);
    const std::string meeting = "is_canceled.pred.b128 c, h;\n    barrier.cluster.arrive;\n    barrier.cluster.wait;\n";
    const std::size_t at = ptx.find(meeting);
    REQUIRE(at != std::string::npos);
    ptx.replace(at, meeting.size(), "is_canceled.pred.b128 c, h;\n");
    under_every_schedule(
        ptx, "b200",
        [](PtxRun& run) {
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(6000));
            run.launch("k", {.grid = {6000, 1, 1}, .block = {64, 1, 1}}, out);
            INFO(findings_text(run));
            CHECK(run.count(FindingKind::shared_race) + run.count(FindingKind::stage_overwritten) +
                      run.count(FindingKind::async_read_pending) + run.count(FindingKind::deadlock) >
                  0);
        },
        3);
}

TEST_CASE("a request after a failure that the CTA has seen is reported")
{
    under_every_schedule(
        persistent(alone, "fence.proxy.async.shared::cta;",
                   "setp.eq.u32 p, r15, 1; @p bra done; mov.u32 r15, 1; bra loop;"),
        "b200",
        [](PtxRun& run) {
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(4));
            run.launch("k", {.grid = {1, 1, 1}, .block = {32, 1, 1}}, out);
            CHECK_FOUND(run, FindingKind::launch_control);
        },
        3);
}

TEST_CASE("the ctaid of a failed request is reported as undefined, and 16 zero bytes mean that nothing was canceled")
{
    PtxRun run(module_text("sm_100a", R"(
.visible .entry k(.param .u64 out)
{
    .reg .pred c; .reg .b32 r<4>; .reg .b64 d<4>; .reg .b128 h;
    .shared .align 16 .b8 response[16];
    ld.param.u64 d0, [out];
    mov.u64 d1, 0;
    st.shared.u64 [response], d1;
    st.shared.u64 [response+8], d1;
    ld.shared.b128 h, [response];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 c, h;
    selp.u32 r0, 1, 2, c;
    st.global.u32 [d0], r0;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 r1, h;
    ret;
}
)"),
               "b200");
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(1));
    CHECK(run.launch("k", {}, out).code == 0);
    CHECK(run.read<std::uint32_t>(out, 1)[0] == 2);
    CHECK_FOUND(run, FindingKind::launch_control);
}

TEST_CASE("reading the response without waiting is reported")
{
    const std::string ptx = module_text("sm_100a", R"(
.visible .entry k()
{
    .reg .b32 r<4>; .reg .b128 h;
    .shared .align 16 .b8 response[16];
    .shared .align 8 .b64 bar;
    mbarrier.init.shared::cta.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    mov.u32 r1, response;
    mov.u32 r2, bar;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [r1], [r2];
    ld.shared.b128 h, [response];
    ret;
}
)");
    under_every_schedule(
        ptx, "b200",
        [](PtxRun& run) {
            run.launch("k", {.grid = {2, 1, 1}, .block = {1, 1, 1}});
            INFO(findings_text(run));
            CHECK(run.count(FindingKind::async_read_pending) + run.count(FindingKind::shared_race) +
                      run.count(FindingKind::uninitialized_shared) >
                  0);
        },
        4);
}

TEST_CASE("misaligned addresses fault")
{
    PtxRun run(persistent("add.u32 r1, r1, 8; " + alone), "b200");
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(4));
    CHECK(run.launch("k", {}, out).code == 716);
    CHECK_FOUND(run, FindingKind::misaligned);
}

TEST_CASE("griddepcontrol does nothing: grids before this one are complete")
{
    PtxRun run(
        module_text("sm_90", ".visible .entry k() { griddepcontrol.wait; griddepcontrol.launch_dependents; ret; }"),
        "h200");
    const LaunchResult result = run.launch("k", {});
    REQUIRE_CLEAN(run, result);
}

TEST_CASE("launch control needs compute capability 10.0")
{
    const PtxRun run(
        module_text("sm_90",
                    ".visible .entry k() { .reg .b32 r<2>; clusterlaunchcontrol.try_cancel.async.shared::cta."
                    "mbarrier::complete_tx::bytes.b128 [r0], [r1]; ret; }"),
        "h200");
    CHECK(run.module().find_kernel("k")->load_error.find("10.0") != std::string::npos);
}

TEST_CASE("an answer that was read needs a proxy fence before its place is used again")
{
    const auto launch = [](PtxRun& run, Dim3 cluster) {
        const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(6000));  // more than the device holds at once
        return run.launch("k", {.grid = {6000, 1, 1}, .block = {64, 1, 1}, .cluster = cluster}, out);
    };
    for (const bool peers : {false, true}) {
        CAPTURE(peers);
        const Dim3 cluster{peers ? 2U : 1U, 1, 1};
        for (const char* const fence : {"fence.proxy.async;", "fence.proxy.async.shared::cta;",
                                        "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;"}) {
            under_every_schedule(
                persistent(peers ? multicast : alone, fence), "b200",
                [&](PtxRun& run) {
                    const LaunchResult result = launch(run, cluster);
                    REQUIRE_CLEAN(run, result);
                },
                2);
        }
        // No fence; one for another memory; one of some lanes; one before the load.
        for (const std::string fence :
             {"", "fence.proxy.async.global;", "setp.lt.u32 p, r0, 40;\n@p fence.proxy.async;"}) {
            CAPTURE(fence);
            under_every_schedule(
                persistent(peers ? multicast : alone, fence), "b200",
                [&](PtxRun& run) {
                    REQUIRE(launch(run, cluster).code == 0);
                    CHECK_FOUND(run, FindingKind::missing_proxy_fence);
                    INFO(findings_text(run));
                    REQUIRE(run.report.findings().size() == 1);
                    CHECK(run.report.findings().front().message.find("but ld.shared.b128 (warp") != std::string::npos);
                },
                4);
        }
    }
}
