// Fences that PTX's letter asks for and common code leaves out: reported with Options::strict_proxy_fences only.

#include "bulk_load.hpp"
#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// Thread 0 initializes an mbarrier, executes `fence`, and after a barrier thread `issuer` loads 64 bytes with it.
std::string kernel(const std::string& fence, const std::string& before_issue = "", unsigned issuer = 0)
{
    return module_text("sm_90a", R"(
.visible .entry k(.param .u64 in)
{
    .reg .pred p, i, done; .reg .b32 r<8>; .reg .b64 d<4>;
    .shared .align 128 .b8 data[64];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [in];
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mov.u32 r2, bar;
    setp.eq.u32 p, r0, 0;
    setp.eq.u32 i, r0, )" + std::to_string(issuer) +
                                     R"(;
    @p mbarrier.init.shared::cta.b64 [bar], 1;
    )" + fence + R"(
    bar.sync 0;
    )" + before_issue + "\n" + issue(bulk_load(64), 64, "i") +
                                     wait_for_bytes + R"(
    bar.sync 0;
    ret;
}
)");
}

LaunchResult launch(PtxRun& run, bool strict)
{
    run.options.strict_proxy_fences = strict;
    const std::uint64_t in = run.buffer(std::vector<std::uint32_t>(16, 7));
    return run.launch("k", {.block = {64, 1, 1}}, in);
}

void expect_clean(const std::string& ptx, bool strict)
{
    CAPTURE(ptx);
    under_every_schedule(
        ptx, "h200",
        [&](PtxRun& run) {
            const LaunchResult result = launch(run, strict);
            REQUIRE_CLEAN(run, result);
        },
        3);
}

/// Only the option reports it, once, at the copy.
void expect_finding(const std::string& ptx)
{
    CAPTURE(ptx);
    under_every_schedule(
        ptx, "h200",
        [](PtxRun& run) {
            REQUIRE(launch(run, true).code == 0);
            CHECK_FOUND(run, FindingKind::strict_proxy_fence);
            REQUIRE(run.report.findings().size() == 1);
            CHECK(run.report.findings().front().ptx_text.find("cp.async.bulk") != std::string::npos);
        },
        3);
    expect_clean(ptx, false);
}

}  // namespace

TEST_CASE("an mbarrier that a copy completes on needs a fence after its initialization")
{
    expect_finding(kernel(""));
    expect_finding(kernel("", "", 40));
    expect_finding(kernel("@!p fence.mbarrier_init.release.cluster;"));
    expect_finding(kernel("@p fence.proxy.async.global;"));
    expect_finding(kernel("fence.acq_rel.cta;"));
    expect_clean(kernel("@p fence.mbarrier_init.release.cluster;"), true);
    expect_clean(kernel("@p fence.mbarrier_init.release.cluster;", "", 40), true);
    expect_clean(kernel("@p fence.proxy.async;"), true);
    expect_clean(kernel("fence.proxy.async.shared::cta;", "", 33), true);
    expect_clean(kernel("", "fence.proxy.async.shared::cta;", 33), true);
}

TEST_CASE("a copy over ordinary stores needs a fence of the storing threads")
{
    const std::string initialized = "@p fence.mbarrier_init.release.cluster;\n";
    const std::string store = "mad.lo.u32 r3, r0, 4, r1; setp.lt.u32 done, r0, 16; @done st.shared.u32 [r3], r0;\n";
    const std::string fence = "fence.proxy.async;\n";
    expect_finding(kernel(initialized + store));
    expect_finding(kernel(initialized + store + "setp.ge.u32 done, r0, 32;\n@done " + fence));  // of others
    expect_finding(kernel(initialized + fence + store));
    expect_clean(kernel(initialized + store + "fence.proxy.async.shared::cta;\n"), true);
}

TEST_CASE("a flag before the wait for a thread's bulk stores is reported on request")
{
    const auto ptx = [](const std::string& body) {
        return module_text("sm_90a", R"(
.visible .entry k(.param .u64 out)
{
    .reg .pred p; .reg .b32 r<8>; .reg .b64 d<4>;
    .shared .align 128 .b8 data[64];
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mad.lo.u32 r3, r0, 4, r1;
    setp.lt.u32 p, r0, 16;
    @p st.shared.u32 [r3], r0;
    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
    setp.ne.u32 p, r0, 0;
    @p bra done;
    cp.async.bulk.global.shared::cta.bulk_group [d0], [r1], 64;
    cp.async.bulk.commit_group;
)" + body + R"(
done:
    cp.async.bulk.wait_group 0;
    ret;
}
)");
    };
    const std::string read = "    cp.async.bulk.wait_group.read 0;\n";
    const std::string whole = "    cp.async.bulk.wait_group 0;\n";
    for (const std::string flag :
         {"st.release.gpu.global.u32 [d0 + 128], 1;", "red.release.gpu.global.add.u32 [d0 + 128], 1;",
          "fence.acq_rel.gpu; atom.global.add.u32 r4, [d0 + 128], 1;",
          "fence.acq_rel.gpu; st.volatile.global.u32 [d0 + 128], 1;"}) {
        for (const auto& [body, wrong] :
             {std::pair{read + flag, true}, std::pair{flag, true}, std::pair{whole + flag, false}}) {
            CAPTURE(body);
            under_every_schedule(
                ptx(body), "h200",
                [&, wrong = wrong](PtxRun& run) {
                    run.options.flags_before_stores = wrong;
                    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(64));
                    REQUIRE(run.launch("k", {}, out).code == 0);
                    INFO(findings_text(run));
                    CHECK(run.count(FindingKind::flag_before_store) == (wrong ? 1 : 0));
                    CHECK(run.report.findings().size() == (wrong ? 1 : 0));
                    run.options.flags_before_stores = !wrong;
                    run.report.clear();
                    REQUIRE(run.launch("k", {}, out).code == 0);
                    CHECK(run.report.findings().empty());
                },
                2);
        }
    }
}
