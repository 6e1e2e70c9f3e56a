// fence and membar: every form is accepted, and the forms for barriers and for the async proxy have their effect.

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

TEST_CASE("every form of fence and membar runs")
{
    std::string body;
    for (const char* semantics : {"sc.", "acq_rel.", "acquire.", "release.", ""}) {
        for (const char* scope : {"cta", "cluster", "gpu", "sys"}) {
            body += std::string("fence.") + semantics + scope + ";\n";
        }
    }
    for (const char* form :
         {"fence.acquire.sync_restrict::shared::cluster.cluster", "fence.release.sync_restrict::shared::cta.cluster",
          "fence.mbarrier_init.release.cluster", "fence.proxy.alias", "fence.proxy.async", "fence.proxy.async.global",
          "fence.proxy.async.shared::cta", "fence.proxy.async.shared::cluster",
          "fence.proxy.tensormap::generic.release.gpu", "fence.proxy.tensormap::generic.acquire.sys [d0], 128",
          "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
          "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster", "membar.cta", "membar.gl",
          "membar.sys", "membar.proxy.alias"}) {
        body += std::string(form) + ";\n";
    }
    PtxRun run(module_text(
        "sm_90", ".visible .entry k(.param .u64 out) { .reg .b64 d<2>; ld.param.u64 d0, [out];\n" + body + "ret; }"));
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(32));
    const LaunchResult result = run.launch("k", {}, out);
    REQUIRE_CLEAN(run, result);
}
