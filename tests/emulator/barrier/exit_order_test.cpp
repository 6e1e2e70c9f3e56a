// A CTA's exit after the accesses of its peers to its shared memory: found where the order is missing, in every schedule.

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// Two CTAs of two warps. p: thread 0; a: thread 0 of CTA 0, and b: of CTA 1; r5, r6: CTA 1's `data` and `bar`; r3, r4: the
/// CTA's own. The mbarriers expect one arrival.
std::string kernel(const std::string& body)
{
    return module_text("sm_90a", R"(
.visible .entry k(.param .u64 in)
{
    .reg .pred p, a, b, q, done; .reg .b16 h<2>; .reg .b32 r<16>; .reg .b64 d<4>;
    .shared .align 128 .b8 data[256];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [in];
    mov.u32 r0, %tid.x;
    mov.u32 r1, %cluster_ctarank;
    mov.u32 r3, data;
    mov.u32 r4, bar;
    mov.u32 r2, 1;
    mov.b16 h0, 3;
    mapa.shared::cluster.u32 r5, r3, r2;
    mapa.shared::cluster.u32 r6, r4, r2;
    setp.eq.u32 p, r0, 0;
    setp.eq.and.u32 a, r1, 0, p;
    setp.eq.and.u32 b, r1, 1, p;
    @p st.shared.u32 [r3], r0;
    @p mbarrier.init.shared::cta.b64 [bar], 1;
    @p fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
)" + body + R"(
    ret;
}
)");
}

LaunchResult launch(PtxRun& run)
{
    const std::uint64_t in = run.buffer(std::vector<std::uint32_t>(64, 7));
    return run.launch("k", {.grid = {2, 1, 1}, .block = {64, 1, 1}, .cluster = {2, 1, 1}}, in);
}

constexpr const char* meet = "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n";
constexpr const char* relaxed_meet = "    barrier.cluster.arrive.relaxed.aligned;\n    barrier.cluster.wait.aligned;\n";
/// The threads of `who` wait for a phase of their CTA's mbarrier.
std::string wait_by(const char* who, const std::string& parity = "0")
{
    return "    @!" + std::string(who) + " bra waited" + parity + ";\nagain" + parity +
           ":\n    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [bar], " + parity +
           ";\n    @!done bra again" + parity + ";\nwaited" + parity + ":\n";
}
const std::string wait = wait_by("b");

void finds(const std::string& body, const std::string& instruction)
{
    CAPTURE(body);
    under_every_schedule(kernel(body), "h200", [&](PtxRun& run) {
        REQUIRE(launch(run).code == 0);
        CHECK_FOUND(run, FindingKind::cluster_protocol);
        INFO(findings_text(run));
        REQUIRE(run.report.findings().size() == 1);
        CHECK(run.report.findings().front().ptx_text.find(instruction) != std::string::npos);
    });
}

void is_clean(const std::string& body)
{
    CAPTURE(body);
    under_every_schedule(kernel(body), "h200", [&](PtxRun& run) {
        const LaunchResult result = launch(run);
        REQUIRE_CLEAN(run, result);
    });
}

const std::string arrive = "    @a mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r6];\n";

}  // namespace

TEST_CASE("a load, store or atomic in a peer's memory must be over before the peer exits")
{
    for (const std::string access :
         {"ld.shared::cluster.u32 r7, [r5];", "st.shared::cluster.u32 [r5 + 4], r0;",
          "atom.shared::cluster.add.u32 r7, [r5], 1;", "ld.relaxed.cluster.shared::cluster.u32 r7, [r5];"}) {
        const std::string remote = "    @a " + access + "\n";
        const std::string name = access.substr(0, access.find(' '));
        finds(remote, name);
        finds(meet + remote, name);  // in the wrong order
        is_clean(remote + meet);
        is_clean(remote + relaxed_meet);
        is_clean(remote + arrive + wait);
    }
}

TEST_CASE("a generic address of a peer's memory is a peer's memory")
{
    const std::string remote = "    cvta.shared.u64 d1, data;\n    mapa.u64 d1, d1, 1;\n    @a ld.u32 r7, [d1];\n";
    finds(remote, "ld.u32");
    is_clean(remote + meet);
}

TEST_CASE("an arrival at a peer's mbarrier must be known to the peer")
{
    finds(arrive, "mbarrier.arrive");
    is_clean(arrive + wait);
    is_clean(arrive + meet);
    is_clean(arrive + relaxed_meet);
    // The peer waits for the first phase only.
    const std::string twice = arrive + wait + meet + arrive;
    finds(twice, "mbarrier.arrive");
    is_clean(twice + wait_by("b", "1"));
    // A relaxed arrival orders no memory, but who waits for it knows of it.
    is_clean("    @a mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [r6];\n" + wait);
}

TEST_CASE("a peer that waits for a multicast, or for an asynchronous store, may exit; another may not")
{
    const std::string multicast = R"(
    @p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
    @!a bra issued;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [r3], [d0], 256, [r4], h0;
issued:
)";
    finds(multicast + wait_by("a"), "cp.async.bulk");  // CTA 0 waits for its own part
    is_clean(multicast + wait_by("p"));
    const std::string store = R"(
    @b mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 4;
    @a st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [r5 + 16], r0, [r6];
)";
    finds(store, "st.async");
    is_clean(store + wait);
}
