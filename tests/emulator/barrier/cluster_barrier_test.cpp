// barrier.cluster: order between the CTAs of a cluster, relaxed arrivals, and its protocol.

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// Each CTA writes its rank + 100 into its shared memory; thread 0 of each reads its neighbour's.
std::string neighbours(const std::string& before, const std::string& after)
{
    return module_text("sm_90", R"(
.visible .entry neighbours(.param .u64 out)
{
    .reg .pred p; .reg .b32 r<10>; .reg .b64 d<4>;
    .shared .align 4 .b8 data[16];
    ld.param.u64 d0, [out];
    mov.u32 r0, %cluster_ctarank;
    mov.u32 r1, %cluster_nctarank;
    mov.u32 r2, %tid.x;
    setp.ne.u32 p, r2, 0;
    @p bra written;
    add.u32 r3, r0, 100;
    st.shared.u32 [data], r3;
written:
    )" + before + R"(
    @p bra read;
    add.u32 r4, r0, 1;
    rem.u32 r4, r4, r1;
    mov.u32 r5, data;
    mapa.shared::cluster.u32 r6, r5, r4;
    ld.shared::cluster.u32 r7, [r6];
    mul.wide.u32 d1, r0, 4;
    add.u64 d2, d0, d1;
    st.global.u32 [d2], r7;
read:
    )" + after + R"(
    ret;
}
)");
}

LaunchResult run_neighbours(PtxRun& run)
{
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(4));
    const LaunchResult result =
        run.launch("neighbours", {.grid = {4, 1, 1}, .block = {64, 1, 1}, .cluster = {4, 1, 1}}, out);
    if (result.code == 0 && run.report.findings().empty()) {
        const auto values = run.read<std::uint32_t>(out, 4);
        for (std::uint32_t i = 0; i < 4; ++i) {
            CHECK(values[i] == 100 + (i + 1) % 4);
        }
    }
    return result;
}

const char* const barrier = "barrier.cluster.arrive; barrier.cluster.wait;";

}  // namespace

TEST_CASE("every form of arrive and wait orders the CTAs")
{
    for (const char* form : {"barrier.cluster.arrive; barrier.cluster.wait;",
                             "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;",
                             "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
                             "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire;"}) {
        CAPTURE(form);
        under_every_schedule(
            neighbours(form, barrier), "h200",
            [](PtxRun& run) {
                const LaunchResult result = run_neighbours(run);
                REQUIRE_CLEAN(run, result);
            },
            5);
    }
}

TEST_CASE("a relaxed arrival without a fence orders nothing")
{
    PtxRun run(neighbours("barrier.cluster.arrive.relaxed; barrier.cluster.wait;", barrier), "h200");
    run_neighbours(run);
    CHECK_FOUND(run, FindingKind::shared_race);
}

TEST_CASE("a CTA that exits while its neighbour may still read its memory is reported in every schedule")
{
    under_every_schedule(neighbours(barrier, ""), "h200", [&](PtxRun& run) {
        run_neighbours(run);
        CHECK_FOUND(run, FindingKind::cluster_protocol);
    });
}

TEST_CASE("arriving twice, and waiting without arriving, are reported")
{
    PtxRun twice(neighbours("barrier.cluster.arrive; barrier.cluster.arrive; barrier.cluster.wait;", barrier), "h200");
    run_neighbours(twice);
    CHECK_FOUND(twice, FindingKind::cluster_protocol);
    PtxRun never(neighbours("barrier.cluster.wait;", barrier), "h200");
    run_neighbours(never);
    CHECK_FOUND(never, FindingKind::cluster_protocol);
}

TEST_CASE("threads that have exited count as arrived")
{
    const std::string ptx = module_text("sm_90", R"(
.visible .entry leave(.param .u64 out)
{
    .reg .pred p; .reg .b32 r<4>; .reg .b64 d<2>;
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
    setp.gt.u32 p, r0, 40;
    @p ret;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    atom.global.add.u32 r1, [d0], 1;
    ret;
}
)");
    under_every_schedule(
        ptx, "h200",
        [&](PtxRun& run) {
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(1));
            const LaunchResult result =
                run.launch("leave", {.grid = {2, 1, 1}, .block = {128, 1, 1}, .cluster = {2, 1, 1}}, out);
            REQUIRE_CLEAN(run, result);
            CHECK(run.read<std::uint32_t>(out, 1)[0] == 82);
        },
        4);
}

TEST_CASE("a missing arrival in one CTA is reported as a deadlock")
{
    // The CTA of rank 2 waits for threads that it does not have.
    PtxRun run(
        neighbours("setp.eq.u32 p, r0, 2; @!p barrier.cluster.arrive; @!p barrier.cluster.wait; @p barrier.sync 1, 96; "
                   "setp.ne.u32 p, r2, 0;",
                   ""),
        "h200");
    const LaunchResult result = run_neighbours(run);
    CHECK(result.code == 702);
    REQUIRE(run.count(FindingKind::deadlock) == 1);
    CHECK(result.message.find("waits at the cluster's barrier") != std::string::npos);
}

TEST_CASE("clusters need compute capability 9.0")
{
    const PtxRun run(module_text("sm_75", ".visible .entry k() { barrier.cluster.arrive; ret; }"), "t4");
    const KernelInfo* kernel = run.module().find_kernel("k");
    REQUIRE(kernel != nullptr);
    CHECK(kernel->load_error.find("9.0") != std::string::npos);
}

TEST_CASE("a thread that waits for the cluster knows that exited threads are done")
{
    // Warp 1 of each CTA exits. Warp 0 then reads what the other CTA's warp 1 wrote.
    const std::string text = module_text("sm_90", R"(
.visible .entry leave(.param .u64 out)
{
    .reg .pred p; .reg .b32 r<10>; .reg .b64 d<4>;
    .shared .align 4 .b8 data[16];
    ld.param.u64 d0, [out];
    mov.u32 r0, %cluster_ctarank;
    mov.u32 r2, %tid.x;
    barrier.cluster.arrive;  // both have started
    barrier.cluster.wait;
    setp.ge.u32 p, r2, 32;
    @!p bra wait;
    setp.ne.u32 p, r2, 32;
    @p ret;
    add.u32 r3, r0, 100;
    st.shared.u32 [data], r3;
    ret;
wait:
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    setp.ne.u32 p, r2, 0;
    @p bra read;
    xor.b32 r4, r0, 1;
    mov.u32 r5, data;
    mapa.shared::cluster.u32 r6, r5, r4;
    ld.shared::cluster.u32 r7, [r6];
    mul.wide.u32 d1, r0, 4;
    add.u64 d2, d0, d1;
    st.global.u32 [d2], r7;
read:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
}
)");
    under_every_schedule(text, "h200", [](PtxRun& run) {
        const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(2));
        const LaunchResult result =
            run.launch("leave", {.grid = {2, 1, 1}, .block = {64, 1, 1}, .cluster = {2, 1, 1}}, out);
        REQUIRE_CLEAN(run, result);
        CHECK(run.read<std::uint32_t>(out, 2) == std::vector<std::uint32_t>{101, 100});
    });
}
