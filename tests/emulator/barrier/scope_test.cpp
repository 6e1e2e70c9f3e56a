// Scopes and semantics of accesses, fences and mbarrier operations: what orders the CTAs of a cluster, and the warps of a
// CTA (PTX ISA 8.7 "Scope", 8.8 "Release and Acquire Patterns", 8.9 "Ordering of memory operations").

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// Thread 0 of each CTA executes `prepare`. A writer stores 42 and executes `release`; a reader executes `acquire` from
/// the label poll on, and reads the 42. The writer is CTA 0 of a cluster and the reader CTA 1, or they are the warps of one
/// CTA. [r3] are 8 bytes in the reader's shared memory, for the reader [mem+8], too.
std::string kernel(const std::string& prepare, const std::string& release, const std::string& acquire, bool cluster)
{
    const std::string barrier = cluster ? "barrier.cluster.arrive; barrier.cluster.wait;" : "bar.sync 0;";
    return module_text("sm_90", R"(
.visible .entry k(.param .u64 out)
{
    .reg .pred p, first; .reg .b32 r<12>; .reg .b64 d<3>;
    .shared .align 8 .b8 mem[32];
    ld.param.u64 d0, [out];
    mov.u32 r1, mem;
    mov.u32 r7, %tid.x;
    and.b32 r8, r7, 31;
    setp.ne.u32 first, r8, 0;
    )" + std::string(cluster ? "mov.u32 r0, %cluster_ctarank; mov.u32 r9, 1;" : "shr.u32 r0, r7, 5; mov.u32 r9, 0;") +
                                    R"(
    mapa.shared::cluster.u32 r2, r1, 0;
    mapa.shared::cluster.u32 r3, r1, r9;
    add.u32 r3, r3, 8;
    setp.ne.u32 p, r7, 0;
    @p bra begin;
    )" + prepare + R"(
begin:
    )" + barrier + R"(
    @first bra end;
    setp.ne.u32 p, r0, 0;
    @p bra poll;
    st.shared.u32 [mem], 42;
    )" + release + R"(
    bra end;
poll:
    )" + acquire + R"(
    ld.shared::cluster.u32 r6, [r2];
    st.global.u32 [d0], r6;
end:
    )" + barrier + R"(
    ret;
}
)");
}

void check(const std::string& prepare, const std::string& release, const std::string& acquire, bool cluster, bool right)
{
    CAPTURE(release);
    CAPTURE(acquire);
    CAPTURE(cluster);
    under_every_schedule(
        kernel(prepare, release, acquire, cluster), "h200",
        [&](PtxRun& run) {
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(1));
            const Shape pair{.grid = {2, 1, 1}, .cluster = {2, 1, 1}};
            const LaunchResult result = run.launch("k", cluster ? pair : Shape{.block = {64, 1, 1}}, out);
            INFO(findings_text(run));
            CHECK(result.code == 0);
            CHECK((run.count(FindingKind::shared_race) == 0) == right);
            CHECK(run.read<std::uint32_t>(out, 1)[0] == 42);
        },
        4);
}

/// `release` sets the flag at [r3]. `acquire` loads it into r5 and is repeated until it is set; then comes `after`.
struct Form {
    const char *release, *acquire, *after;
};

void check(const Form& form, bool cluster, bool right)
{
    check("st.shared.u32 [mem+8], 0;", form.release,
          std::string(form.acquire) + " setp.eq.u32 p, r5, 0; @p bra poll; " + form.after, cluster, right);
}

/// The same with an mbarrier of the reader: `arrive` names it as [r3], `wait` as [mem+8].
void check_mbarrier(const std::string& arrive, const std::string& wait, bool cluster, bool right)
{
    check("mbarrier.init.shared::cta.b64 [mem+8], 1; fence.mbarrier_init.release.cluster;", arrive, wait, cluster,
          right);
}

constexpr const char* st_cta = "st.release.cta.shared::cluster.u32 [r3], 1;";
constexpr const char* st_cluster = "st.release.cluster.shared::cluster.u32 [r3], 1;";
constexpr const char* st_relaxed = "st.relaxed.cluster.shared::cluster.u32 [r3], 1;";
constexpr const char* ld_cta = "ld.acquire.cta.shared::cluster.u32 r5, [r3];";
constexpr const char* ld_cluster = "ld.acquire.cluster.shared::cluster.u32 r5, [r3];";
constexpr const char* ld_relaxed = "ld.relaxed.cluster.shared::cluster.u32 r5, [r3];";
constexpr const char* fence_cta = "fence.acq_rel.cta;";
constexpr const char* fence_cluster = "fence.acq_rel.cluster;";

}  // namespace

TEST_CASE("accesses and fences order what their scopes include")
{
    const std::string fenced_store = std::string(fence_cluster) + st_relaxed;
    const std::string near_fenced_store = std::string(fence_cta) + st_relaxed;
    const std::string near_store = std::string(fence_cluster) + "st.relaxed.cta.shared::cluster.u32 [r3], 1;";
    const std::string late_fence = std::string(st_relaxed) + fence_cluster;
    struct Case {
        Form form;
        bool orders_ctas, orders_warps;
    };
    const Case cases[] = {
        {{st_cluster, ld_cluster, ""}, true, true},
        {{"st.release.gpu.shared::cluster.u32 [r3], 1;", "ld.acquire.sys.shared::cluster.u32 r5, [r3];", ""},
         true,
         true},
        {{st_cta, ld_cta, ""}, false, true},
        {{st_cluster, ld_cta, ""}, false, true},
        {{st_cta, ld_cluster, ""}, false, true},
        {{st_relaxed, ld_relaxed, ""}, false, false},
        {{st_relaxed, ld_cluster, ""}, false, false},
        {{st_cluster, ld_relaxed, ""}, false, false},
        {{st_cluster, ld_relaxed, fence_cluster}, true, true},
        {{st_cluster, ld_relaxed, fence_cta}, false, true},
        {{fenced_store.c_str(), ld_cluster, ""}, true, true},
        {{fenced_store.c_str(), ld_relaxed, fence_cluster}, true, true},
        {{fenced_store.c_str(), ld_relaxed, ""}, false, false},
        {{near_fenced_store.c_str(), ld_relaxed, fence_cta}, false, true},
        {{near_fenced_store.c_str(), ld_cluster, ""}, false, true},
        {{near_store.c_str(), ld_cluster, ""}, false, true},
        {{late_fence.c_str(), ld_cluster, ""}, false, false},
        // volatile is for flags of any style
        {{"st.volatile.shared::cluster.u32 [r3], 1;", "ld.volatile.shared::cluster.u32 r5, [r3];", ""}, true, true},
    };
    for (const Case& each : cases) {
        check(each.form, true, each.orders_ctas);
        check(each.form, false, each.orders_warps);
    }
}

TEST_CASE("atomics are relaxed unless they say something else")
{
    const char* const add = "atom.shared::cluster.add.u32 r5, [r3], 0;";
    const char* const exchange = "atom.shared::cluster.exch.b32 r10, [r3], 1;";
    const std::string fenced = std::string("membar.gl;") + exchange;
    for (const bool cluster : {false, true}) {
        check({exchange, add, ""}, cluster, false);
        check({fenced.c_str(), add, ""}, cluster, false);
        check({exchange, add, "membar.gl;"}, cluster, false);
        check({fenced.c_str(), add, "membar.gl;"}, cluster, true);
        check({fenced.c_str(), ld_cluster, ""}, cluster, true);
        check({"atom.release.cluster.shared::cluster.exch.b32 r10, [r3], 1;",
               "atom.acquire.cluster.shared::cluster.add.u32 r5, [r3], 0;", ""},
              cluster, true);
        check({"red.release.cluster.shared::cluster.add.u32 [r3], 1;",
               "atom.acq_rel.cluster.shared::cluster.add.u32 r5, [r3], 0;", ""},
              cluster, true);
        check({"atom.acq_rel.cta.shared::cluster.exch.b32 r10, [r3], 1;",
               "atom.acq_rel.cta.shared::cluster.add.u32 r5, [r3], 0;", ""},
              cluster, !cluster);
    }
}

TEST_CASE("an mbarrier orders what the scopes that are written out include")
{
    const auto arrive = [](const std::string& order) {
        return "mbarrier.arrive" + order + ".shared::cluster.b64 _, [r3];";
    };
    const auto wait = [](const std::string& order) {
        return "mbarrier.try_wait.parity" + order + ".shared::cta.b64 p, [mem+8], 0; @!p bra poll;";
    };
    struct Case {
        std::string arrive, wait;
        bool orders_ctas, orders_warps;
    };
    const Case cases[] = {
        // The default scope is .cta, but programs (CUTLASS) rely on more: see docs/notes/emulator-reports.md.
        {arrive(""), wait(""), true, true},
        {arrive(".release.cluster"), wait(""), true, true},
        {arrive(".release.cluster"), wait(".acquire.cluster"), true, true},
        {arrive(".release.cluster"), wait(".acquire.cta"), false, true},
        {arrive(".release.cta"), wait(".acquire.cluster"), false, true},
        {arrive(".relaxed.cluster"), wait(".acquire.cluster"), false, false},
        {fence_cluster + arrive(".relaxed.cluster"), wait(".acquire.cluster"), true, true},
        {fence_cta + arrive(".relaxed.cluster"), wait(".acquire.cluster"), false, true},
        {arrive(".release.cluster"), wait(".relaxed.cluster"), false, false},
        {arrive(".release.cluster"), wait(".relaxed.cluster") + fence_cluster, true, true},
        {arrive(".release.cluster"), wait(".relaxed.cluster") + fence_cta, false, true},
    };
    for (const Case& each : cases) {
        check_mbarrier(each.arrive, each.wait, true, each.orders_ctas);
        check_mbarrier(each.arrive, each.wait, false, each.orders_warps);
    }
}

TEST_CASE("an asynchronous store that completes on a barrier is visible to a wait of any scope")
{
    // CTA 0 stores into CTA 1's memory, which waits and reads its own.
    const std::string ptx = module_text("sm_90", R"(
.visible .entry k(.param .u64 out)
{
    .reg .pred p; .reg .b32 r<8>; .reg .b64 d<3>;
    .shared .align 8 .b8 mem[32];
    ld.param.u64 d0, [out];
    mov.u32 r1, mem;
    mov.u32 r0, %cluster_ctarank;
    mapa.shared::cluster.u32 r2, r1, 1;
    add.u32 r3, r2, 8;
    mbarrier.init.shared::cta.b64 [mem+8], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 d1, [mem+8], 4;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.ne.u32 p, r0, 0;
    @p bra poll;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [r2], 42, [r3];
    bra end;
poll:
    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [mem+8], 0;
    @!p bra poll;
    ld.shared.u32 r6, [mem];
    st.global.u32 [d0], r6;
end:
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
}
)");
    under_every_schedule(
        ptx, "h200",
        [](PtxRun& run) {
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(1));
            const LaunchResult result =
                run.launch("k", {.grid = {2, 1, 1}, .block = {1, 1, 1}, .cluster = {2, 1, 1}}, out);
            REQUIRE_CLEAN(run, result);
            CHECK(run.read<std::uint32_t>(out, 1)[0] == 42);
        },
        4);
}
