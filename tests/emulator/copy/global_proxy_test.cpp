// Global memory through two proxies: ordinary stores before bulk loads, tensor maps that a kernel writes, and ordinary
// accesses after bulk stores.

#include <cstring>

#include "bulk_load.hpp"
#include "machine/tensor_map.hpp"
#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// Two warps. d0: 512 bytes of global memory; d1: the same, and d2: 256 bytes for a map; shared `data` of 256 bytes at r1;
/// the mbarrier at r2 is ready for one arrival. r0: thread; p: thread 0; q: warp 0.
std::string kernel(const std::string& body)
{
    return module_text("sm_100a", R"(
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out, .param .u64 mine)
{
    .reg .pred p, q, done; .reg .b32 r<12>; .reg .b64 d<12>;
    .shared .align 128 .b8 data[256];
    .shared .align 128 .b8 copy[128];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [in];
    ld.param.u64 d1, [out];
    ld.param.u64 d2, [mine];
    mov.b64 d3, map;
    cvta.param.u64 d3, d3;
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mov.u32 r2, bar;
    mov.u32 r3, copy;
    mov.u32 r9, 0;
    setp.eq.u32 p, r0, 0;
    setp.lt.u32 q, r0, 32;
    mul.wide.u32 d4, r0, 4;
    add.u64 d5, d0, d4;          // the thread's word of `in`
    mad.lo.u32 r4, r0, 4, r1;    // and of `data`
    st.shared.u32 [r4], r0;
    @p mbarrier.init.shared::cta.b64 [bar], 1;
    @p fence.mbarrier_init.release.cluster;
    fence.proxy.async.shared::cta;
    bar.sync 0;
)" + body + R"(
    bar.sync 0;
    ret;
}
)");
}

/// Thread 0 executes `copy` of 256 bytes, and all wait for them.
std::string load_by(const std::string& copy) { return issue(copy, 256) + wait_for_bytes; }
const std::string load_256 = load_by(bulk_load(256));
/// The same through the tensor map at `map`.
std::string tensor_load(const std::string& map)
{
    return load_by("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [" + map +
                   ", {r9}], [r2];");
}

LaunchResult launch(PtxRun& run, std::uint32_t grid = 1)
{
    const std::uint64_t in = run.buffer(std::vector<std::uint32_t>(128, 7));
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(128, 7));
    TensorMap map;
    map.element = TensorElement::u32;
    map.rank = 1;
    map.extents = {64, 1, 1, 1, 1};
    map.box = {64, 1, 1, 1, 1};
    map.address = in;
    const std::uint64_t mine = run.buffer(std::vector<std::uint32_t>(64));
    Shape shape;
    shape.block = {64, 1, 1};
    shape.grid = {grid, 1, 1};
    return run.launch("k", shape, encode(map), in, out, mine);
}

void finds(const std::string& body, FindingKind kind, const std::string& text)
{
    CAPTURE(body);
    under_every_schedule(
        kernel(body), "b200",
        [&](PtxRun& run) {
            REQUIRE(launch(run).code == 0);
            CHECK_FOUND(run, kind);
            INFO(findings_text(run));
            REQUIRE(run.report.findings().size() == 1);
            const Finding finding = run.report.findings().front();
            CHECK(finding.message.find(text) != std::string::npos);
            CHECK(finding.ptx_line != 0);
        },
        5);
}

void is_clean(const std::string& body)
{
    CAPTURE(body);
    under_every_schedule(
        kernel(body), "b200",
        [&](PtxRun& run) {
            const LaunchResult result = launch(run);
            REQUIRE_CLEAN(run, result);
        },
        5);
}

}  // namespace

TEST_CASE("a bulk load of what its own thread stored needs a fence.proxy.async in between")
{
    const auto body = [](const std::string& before, const std::string& after) {
        return before + "    @p st.global.u32 [d0 + 12], r0;\n" + after + load_256;
    };
    const std::string text = "st.global.u32 (warp 0 of the cluster, PTX line";
    finds(body("", ""), FindingKind::missing_proxy_fence, text);
    finds(body("fence.proxy.async;", ""), FindingKind::missing_proxy_fence, text);
    finds(body("", "fence.proxy.async.shared::cta;"), FindingKind::missing_proxy_fence, text);
    finds(body("", "fence.acq_rel.gpu;"), FindingKind::missing_proxy_fence, text);
    finds("@p red.global.add.u32 [d0 + 252], 1;" + load_256, FindingKind::missing_proxy_fence, "red.global.add.u32");
    finds("cvta.to.global.u64 d6, d0; @p st.u32 [d6], r0;" + load_256, FindingKind::missing_proxy_fence,
          "st.u32 (warp 0");
    is_clean(body("", "fence.proxy.async;"));
    is_clean(body("", "fence.proxy.async.global;"));
    is_clean(body("", "fence.acq_rel.gpu; fence.proxy.async.global; fence.acq_rel.gpu;"));
    is_clean("@p st.global.u32 [d0 + 256], r0;" + load_256);  // not what is loaded
}

TEST_CASE("a bulk load of what another warp stored needs the writers' fence or the issuer's")
{
    const auto body = [](const std::string& writers, const std::string& issuer) {
        return "    @q bra stored;\n    st.global.u32 [d5], r0;\n" + writers + "stored:\n    bar.sync 0;\n" + issuer +
               load_256;
    };
    finds(body("", ""), FindingKind::missing_proxy_fence, "(warp 1 of the cluster");
    finds(body("", "@!p fence.proxy.async.shared::cta;"), FindingKind::missing_proxy_fence, "(warp 1 of the cluster");
    is_clean(body("fence.proxy.async.global;", ""));
    is_clean(body("fence.proxy.async;", ""));
    is_clean(body("", "@p fence.proxy.async;"));
    is_clean(body("", "@q fence.proxy.async.global;"));
    // Half of the writers have no fence.
    finds(R"(
    @q bra stored;
    mul.wide.u32 d4, r0, 16;
    add.u64 d5, d1, d4;
    mov.u64 d0, d1;
    add.u64 d0, d0, 512;
    sub.u64 d5, d5, 0;
    st.global.u32 [d5 + -512], r0;
    setp.lt.u32 done, r0, 36;
    @done fence.proxy.async.global;
stored:
    bar.sync 0;
    mov.u64 d0, d1;
)" + load_256,
          FindingKind::missing_proxy_fence, "(warp 1 of the cluster");
}

TEST_CASE("a tensor copy, too, reads through the async proxy")
{
    const std::string load = tensor_load("d3");
    finds("st.global.u32 [d5], r0; bar.sync 0;" + load, FindingKind::missing_proxy_fence, "cp.async.bulk.tensor reads");
    is_clean("st.global.u32 [d5], r0; fence.proxy.async; bar.sync 0;" + load);
}

TEST_CASE("an earlier kernel's stores and another cluster's need no fence here")
{
    PtxRun run(kernel("st.global.u32 [d5], r0;"), "b200");
    REQUIRE_CLEAN(run, launch(run));
    // Each CTA loads what all of them store: a race between clusters, which is not looked for.
    PtxRun many(kernel("setp.eq.u32 done, r0, 64; @done st.global.u32 [d5], r0;" + load_256), "b200");
    REQUIRE_CLEAN(many, launch(many, 4));
}

TEST_CASE("a map that the kernel wrote is released and acquired before it is used")
{
    const std::string copy = R"(
    @!q bra copied;
    add.u64 d6, d3, d4;
    ld.u32 r5, [d6];
    mad.lo.u32 r6, r0, 4, r3;
    st.shared.u32 [r6], r5;
    bar.warp.sync 0xffffffff;
    @p tensormap.replace.tile.global_address.shared::cta.b1024.b64 [r3], d1;
    bar.warp.sync 0xffffffff;
)";
    const std::string publish =
        "    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [d2], [r3], 128;\n";
    const std::string store_words = R"(
    ld.shared.u32 r5, [r6];
    add.u64 d7, d2, d4;
    st.global.u32 [d7], r5;
)";
    const std::string use = tensor_load("d2");
    const std::string copied = "copied:\n    bar.sync 0;\n";
    const std::string acquire = "    @q fence.proxy.tensormap::generic.acquire.gpu [d2], 128;\n";
    const std::string release = "    fence.proxy.tensormap::generic.release.gpu;\n";
    is_clean(copy + publish + copied + acquire + use);
    is_clean(copy + publish + acquire + copied + use);  // by the other lanes of the warp, before the barrier
    is_clean(copy + store_words + release + copied + acquire + use);
    is_clean(copy + store_words + "bar.warp.sync 0xffffffff;\n    @p fence.proxy.tensormap::generic.release.cta;\n" +
             copied + acquire + use);
    finds(copy + publish + copied + use, FindingKind::missing_proxy_fence, "generic.acquire of this address");
    finds(copy + acquire + publish + copied + use, FindingKind::missing_proxy_fence, "generic.acquire of this address");
    finds(copy + store_words + release + copied + use, FindingKind::missing_proxy_fence,
          "generic.acquire of this address");
    finds(copy + store_words + copied + acquire + use, FindingKind::missing_proxy_fence,
          "generic.release after the write");
    finds(copy + store_words + copied + "fence.proxy.async;\n" + use, FindingKind::missing_proxy_fence,
          "generic.release after the write");
    finds(copy + release + store_words + copied + acquire + use, FindingKind::missing_proxy_fence,
          "generic.release after the write");
    // The map is changed again after it was acquired.
    finds(copy + publish + acquire + "    tensormap.replace.tile.global_address.global.b1024.b64 [d2], d0;\n" +
              release + copied + use,
          FindingKind::missing_proxy_fence, "tensormap.replace");
}

namespace {

constexpr const char* store_256 = "    @p cp.async.bulk.global.shared::cta.bulk_group [d1], [r1], 256;\n";
constexpr const char* commit = "    @p cp.async.bulk.commit_group;\n";
constexpr const char* wait_read = "    @p cp.async.bulk.wait_group.read 0;\n";
constexpr const char* wait_all = "    @p cp.async.bulk.wait_group 0;\n";
constexpr const char* barrier = "    bar.sync 0;\n";

}  // namespace

TEST_CASE("a wait for the source of a bulk store is no wait for its result")
{
    const std::string issue = std::string(store_256) + commit;
    const std::string read = "    ld.global.u32 r5, [d1 + 16];\n    st.global.u32 [d0], r5;\n";
    for (const std::string& other : {std::string(), std::string(barrier)}) {
        const std::string lane = other.empty() ? "    @!p bra skip;\n" + read + "skip:\n" : read;
        finds(issue + wait_read + other + lane, FindingKind::async_read_pending, "cp.async.bulk (PTX line");
        finds(issue + other + lane, FindingKind::async_read_pending, "wait_group (without .read)");
        is_clean(issue + wait_all + other + lane);
        is_clean(issue + wait_read + wait_all + other + lane);
    }
    finds(store_256 + std::string(wait_all) + barrier + read, FindingKind::async_read_pending, "");  // never committed
    finds(issue + barrier + wait_all + read, FindingKind::async_read_pending, "");  // only the issuer has waited
    // Groups: the newer one may be pending.
    const std::string two =
        issue + "    @p cp.async.bulk.global.shared::cta.bulk_group [d0 + 256], [r1], 256;\n" + commit;
    is_clean(two + "    @p cp.async.bulk.wait_group 1;\n" + barrier + read);
    finds(two + "    @p cp.async.bulk.wait_group 1;\n" + barrier +
              "    ld.global.u32 r5, [d0 + 256];\n    st.global.u32 [d0], r5;\n",
          FindingKind::async_read_pending, "");
    is_clean(issue + wait_read + barrier + "    ld.global.u32 r5, [d1 + 256];\n    st.global.u32 [d0], r5;\n");
}

TEST_CASE("a reduction and a tensor store, too, are complete after the whole wait")
{
    const std::string reduce =
        "    @p cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [d1], [r1], 256;\n" + std::string(commit);
    const std::string tensor =
        "    @p cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [d3, {r9}], [r1];\n" + std::string(commit);
    const std::string read_out = "    ld.global.v4.u32 {r5, r6, r7, r8}, [d1 + 240];\n    st.shared.u32 [r3], r5;\n";
    const std::string read_in = "    ld.global.v4.u32 {r5, r6, r7, r8}, [d0 + 240];\n    @p st.shared.u32 [r3], r5;\n";
    finds(reduce + wait_read + "    @!p bra skip;\n" + read_out + "skip:\n", FindingKind::async_read_pending,
          "cp.reduce.async.bulk (PTX line");
    finds(tensor + wait_read + barrier + read_in, FindingKind::async_read_pending, "cp.async.bulk.tensor (PTX line");
    is_clean(reduce + wait_all + "    @!p bra skip;\n" + read_out + "skip:\n");
    is_clean(tensor + wait_all + barrier + read_in);
    // A polling reader does not race, and knows what it does.
    is_clean(reduce + wait_read + barrier + "    ld.relaxed.gpu.global.u32 r5, [d1 + 240];\n");
}

TEST_CASE("a store over a bulk store in flight is found, and a bulk load of what it writes")
{
    const std::string issue = std::string(store_256) + commit;
    const std::string over = "    @p st.global.u32 [d1 + 128], r0;\n";
    finds(issue + over, FindingKind::stage_overwritten, "st.global.u32 writes global");
    finds(issue + wait_read + over, FindingKind::stage_overwritten, "st.global.u32 writes global");
    is_clean(issue + wait_all + over);
    is_clean(issue + wait_read + "    @p st.global.u32 [d1 + 256], r0;\n");
    const std::string load = "    mov.u64 d0, d1;\n" + load_256;
    finds(issue + wait_read + load, FindingKind::async_read_pending, "cp.async.bulk reads global");
    is_clean(issue + wait_all + load);
}

TEST_CASE("only the bytes that a mask selects are in flight")
{
    const std::string issue =
        "    mov.b16 h0, 0x00F0;\n    @p cp.async.bulk.global.shared::cta.bulk_group.cp_mask [d1], [r1], 256, h0;\n" +
        std::string(commit) + wait_read;
    const std::string declare = "    .reg .b16 h<2>;\n";
    finds(declare + issue + "    @p st.global.u32 [d1 + 20], r0;\n", FindingKind::stage_overwritten, "st.global.u32");
    is_clean(declare + issue + "    @p st.global.u32 [d1 + 16], r0;\n");
}
