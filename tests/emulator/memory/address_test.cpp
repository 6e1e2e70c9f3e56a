#include "lane_kernel.hpp"

namespace tessera::emulator::test {

TEST_CASE("cvta makes a generic address of each space, and back")
{
    check_lanes(
        R"(
        .shared .b32 s[4]; .local .b32 l[4];
        mov.b64 %d1, s; cvta.shared.u64 %d2, %d1; cvta.to.shared.u64 %d3, %d2; sub.s64 %d4, %d3, %d1;
        st.global.b64 [%out], %d4;
        cvta.shared::cluster.u64 %d5, s; sub.s64 %d4, %d5, %d2; st.global.b64 [%out+8], %d4;
        mov.b64 %d1, l; cvta.local.u64 %d2, %d1; cvta.to.local.u64 %d3, %d2; sub.s64 %d4, %d3, %d1;
        st.global.b64 [%out+16], %d4;
        cvta.global.u64 %d2, variable; cvta.to.global.u64 %d3, %d2; ld.global.b32 %r1, [%d3];
        st.global.b32 [%out+24], %r1;
        cvta.const.u64 %d2, constant; cvta.to.const.u64 %d3, %d2; ld.const.b32 %r1, [%d3]; st.global.b32 [%out+28], %r1;
        cvta.global.u64 %d2, variable+4; ld.b32 %r1, [%d2]; st.global.b32 [%out+32], %r1;)",
        [](unsigned, const Slot&, Slot& out) {
            put(out, std::array<std::uint64_t, 3>{});
            put(out, 7u, 24);
            put(out, 8u, 28);
            put(out, 9u, 32);
        },
        ".global .u32 variable[2] = {7, 9}; .const .u32 constant = 8;");
}

TEST_CASE("the address of a local variable fits into 32 bits, in every frame")
{
    check_lanes(
        R"(
        .local .b32 l[4];
        mov.b32 %r1, l; mov.u32 %r2, %tid.x; st.local.b32 [%r1+4], %r2;
        cvt.u64.u32 %d1, %r1; cvta.local.u64 %d2, %d1; ld.b32 %r3, [%d2+4]; st.global.b32 [%out], %r3;
        mov.b32 %r3, l+4; sub.u32 %r3, %r3, %r1; st.global.b32 [%out+4], %r3;
        { .param .b64 a; st.param.b64 [a], %out; call.uni deep, (a); }
        ld.local.b32 %r3, [l+4]; st.global.b32 [%out+12], %r3;)",
        [](unsigned lane, const Slot&, Slot& out) {
            put(out, lane);
            put(out, 4u, 4);
            put(out, 5u, 8);
            put(out, lane, 12);
        },
        ".func deep(.param .b64 p) { .local .b32 m[4]; .reg .b32 %a<4>; .reg .b64 %q;\n"
        "ld.param.b64 %q, [p]; mov.b32 %a1, m; mov.b32 %a2, 5; st.local.b32 [%a1+4], %a2;\n"
        "ld.local.b32 %a3, [m+4]; st.global.b32 [%q+8], %a3; ret; }");
}

TEST_CASE("isspacep distinguishes the spaces")
{
    const std::vector<std::string> spaces{"global", "shared", "shared::cta", "shared::cluster",
                                          "local",  "const",  "param"};
    std::string body =
        ".shared .b32 s[4]; .local .b32 l[4]; cvta.shared.u64 %d1, s; mov.b64 %d2, l; cvta.local.u64 %d2, %d2;"
        "cvta.const.u64 %d3, constant; mov.b64 %d4, in; cvta.param.u64 %d4, %d4; mov.b64 %d5, 0x00F1000000000000;\n";
    unsigned at = 0;
    for (const std::string& space : spaces) {
        for (const std::string address : {"%in", "%d1", "%d2", "%d3", "%d4", "%d5"}) {
            body += "isspacep." + space + " %p1, " + address + "; selp.b32 %r1, 1, 0, %p1; st.global.u8 [%out+" +
                    std::to_string(at++) + "], %r1;\n";
        }
    }
    check_lanes(
        body,
        [](unsigned, const Slot&, Slot& out) {
            // Of: a buffer, shared, local, constant, parameter, unmapped memory.
            const std::uint8_t expected[7][6] = {{1, 0, 0, 0, 0, 1}, {0, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0},
                                                 {0, 1, 0, 0, 0, 0}, {0, 0, 1, 0, 0, 0}, {0, 0, 0, 1, 0, 0},
                                                 {0, 0, 0, 0, 1, 0}};
            std::memcpy(out.data(), expected, sizeof expected);
        },
        ".const .u32 constant = 8;");
}

TEST_CASE("only the guarded lanes change isspacep's predicate")
{
    check_lanes(
        "setp.eq.u32 %p1, %lane, %lane; and.b32 %r1, %lane, 1; setp.eq.u32 %p2, %r1, 1; @%p2 isspacep.shared %p1, %in;"
        "selp.b32 %r2, 1, 0, %p1; st.global.b32 [%out], %r2;",
        [](unsigned lane, const Slot&, Slot& out) { put(out, lane % 2 == 1 ? 0u : 1u); });
}

namespace {

/// Runs `body` in clusters of `size` CTAs of one warp; each CTA has 256 bytes of output at %out, and its rank in %rank.
struct ClusterRun : PtxRun {
    ClusterRun(std::string_view body, unsigned size, Schedule schedule = Schedule::in_order, unsigned warps = 1)
        : PtxRun(module_text("sm_100a", R"(
.visible .entry k(.param .u64 out)
{
    .reg .b16 %h<9>; .reg .b32 %r<30>; .reg .b64 %d<30>; .reg .f32 %f<9>; .reg .pred %p<9>; .reg .b32 %rank, %lane;
    .reg .b64 %out;
    .shared .align 16 .b8 s[1024];
    ld.param.u64 %out, [out]; mov.u32 %rank, %cluster_ctarank; mov.u32 %lane, %tid.x;
    mul.wide.u32 %d29, %rank, 256; add.s64 %out, %out, %d29;
)" + std::string(body) + "\n ret;\n}"))
    {
        options.schedule = schedule;
        out = buffer(std::vector<std::uint8_t>(256 * size));
        result = launch("k", {.grid = {size, 1, 1}, .block = {32 * warps, 1, 1}, .cluster = {size, 1, 1}}, out);
        error = module().find_kernel("k")->load_error;
    }
    std::uint64_t out = 0;
    LaunchResult result;
    std::string error;
};

const std::string sync = " barrier.cluster.arrive; barrier.cluster.wait; ";

}  // namespace

TEST_CASE("mapa and getctarank")
{
    const ClusterRun run(R"(
        mov.b32 %r1, s; mapa.shared::cluster.u32 %r2, %r1, 2; getctarank.shared::cluster.u32 %r3, %r2;
        getctarank.shared::cluster.u32 %r4, %r1;
        st.global.b32 [%out], %r3; st.global.b32 [%out+4], %r4;
        cvta.shared.u64 %d1, s; mapa.u64 %d2, %d1, 3; getctarank.u64 %r5, %d2; st.global.b32 [%out+8], %r5;
        mov.b64 %d3, s; mapa.shared::cluster.u64 %d4, %d3, 1; getctarank.shared::cluster.u64 %r6, %d4;
        st.global.b32 [%out+12], %r6;
        mapa.shared::cluster.u32 %r7, s, %rank; sub.u32 %r7, %r7, %r1; st.global.b32 [%out+16], %r7;
        mapa.shared::cluster.u32 %r8, s+8, 0; mapa.shared::cluster.u32 %r9, %r1, 0; sub.u32 %r8, %r8, %r9;
        st.global.b32 [%out+20], %r8;
        isspacep.shared::cluster %p1, %d2; selp.b32 %r10, 1, 0, %p1; st.global.b32 [%out+24], %r10;
        isspacep.shared::cta %p1, %d2; selp.b32 %r10, 1, 0, %p1; st.global.b32 [%out+28], %r10;)",
                         4);
    INFO(run.error, run.result.message, run.report.text());
    REQUIRE(run.result.code == 0);
    CHECK(run.report.findings().empty());
    for (unsigned rank = 0; rank < 4; ++rank) {
        const auto words = run.read<std::uint32_t>(run.out + 256 * rank, 8);
        CHECK(words == std::vector<std::uint32_t>{2, rank, 3, 1, 0, 8, 1, rank == 3 ? 1u : 0u});
    }
}

TEST_CASE("mapa beyond the cluster is reported")
{
    const ClusterRun run("mapa.shared::cluster.u32 %r2, s, 2; mapa.u64 %d1, %out, 0;", 2);
    REQUIRE(run.result.code == 0);
    CHECK(run.count(FindingKind::invalid_operand) == 2 * 2 * 32);
}

TEST_CASE("distributed shared memory: loads, stores and atomics on a peer's memory, in all schedules")
{
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        const ClusterRun run(
            "mov.b32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; mad.lo.u32 %r3, %rank, 1000, %lane; st.shared.b32 [%r2], "
            "%r3;"
            "st.shared.b32 [s+512], 0;" +
                sync +
                "xor.b32 %r4, %rank, 1; mapa.shared::cluster.u32 %r5, %r2, %r4; ld.shared::cluster.b32 %r6, [%r5];"
                "cvta.shared.u64 %d1, s; mapa.u64 %d2, %d1, %r4; mul.wide.u32 %d3, %lane, 4; add.s64 %d3, %d2, %d3; "
                "ld.b32 %r7, [%d3];"
                "st.b32 [%d3+256], %r6; atom.add.u32 %r8, [%d2+512], 1; mapa.shared::cluster.u32 %r9, s, %r4; "
                "red.shared::cluster.add.u32 [%r9+512], 1;" +
                sync +
                "ld.shared.b32 %r8, [%r2+256]; ld.shared.b32 %r10, [s+512]; add.u32 %r8, %r8, %r10;"
                "mul.wide.u32 %d4, %lane, 4; add.s64 %d4, %out, %d4; st.global.b32 [%d4], %r8; sub.u32 %r6, %r6, %r7; "
                "st.global.b32 [%d4+128], %r6;",
            2, schedule);
        INFO(run.error, run.result.message, run.report.text());
        REQUIRE(run.result.code == 0);
        CHECK(run.report.findings().empty());
        for (unsigned rank = 0; rank < 2; ++rank) {
            const auto words = run.read<std::uint32_t>(run.out + 256 * rank, 64);
            for (unsigned lane = 0; lane < 32; ++lane) {
                CHECK(words[lane] == rank * 1000 + lane + 64);  // the peer sent back what it read here
                CHECK(words[32 + lane] == 0);
            }
        }
    }
}

TEST_CASE("an access to a peer before it has started or after it has exited is reported")
{
    const std::string early =
        "xor.b32 %r4, %rank, 1; mapa.shared::cluster.u32 %r5, s, %r4; st.shared::cluster.b32 [%r5], 1;";
    const ClusterRun first(early, 2);
    REQUIRE(first.result.code == 0);
    CHECK(first.count(FindingKind::cluster_protocol) > 0);
    const std::string late = "st.shared.b32 [s], 1;" + sync +
                             "setp.eq.u32 %p1, %rank, 0; @%p1 bra END; mov.u32 %r6, 0;"
                             "WAIT: add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 3000; @%p2 bra WAIT;"
                             "mapa.shared::cluster.u32 %r5, s, 0; ld.shared::cluster.b32 %r7, [%r5]; END:";
    const ClusterRun second(late, 2);
    INFO(second.error, second.result.message, second.report.text());
    REQUIRE(second.result.code == 0);
    CHECK(second.count(FindingKind::cluster_protocol) > 0);
}

TEST_CASE("addresses of a missing CTA, or of another CTA with .shared::cta, are reported")
{
    const ClusterRun missing("mov.b32 %r1, 0x05000400; ld.shared::cluster.b32 %r2, [%r1];", 2);
    CHECK(missing.result.code == 700);
    CHECK(missing.count(FindingKind::out_of_bounds) == 1);
    const ClusterRun other(
        "st.shared.b32 [s], 5;" + sync +
            "xor.b32 %r4, %rank, 1; mapa.shared::cluster.u32 %r5, s, %r4; ld.shared.b32 %r6, [%r5];" + sync,
        2);
    INFO(other.error, other.result.message, other.report.text());
    CHECK(other.result.code == 0);
    CHECK(other.count(FindingKind::invalid_operand) == 64);
}

TEST_CASE("cache hints are accepted in the forms that PTX has")
{
    check_lanes(
        R"(
        .local .b32 l[4];
        prefetch.global.L1 [%in]; prefetch.global.L2 [%in]; prefetch.L2 [%in+64];
        prefetch.global.L2::evict_last [%in]; prefetch.global.L2::evict_normal [%in];
        prefetchu.L1 [%in]; prefetch.local.L1 [l]; prefetch.tensormap [%in]; prefetch.param.tensormap [in];
        prefetch.const.tensormap [constant];
        applypriority.global.L2::evict_normal [%all], 128; applypriority.L2::evict_normal [%all], 128;
        createpolicy.fractional.L2::evict_last.b64 %d1, 1.0;
        createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d1, 0.5;
        createpolicy.fractional.L2::evict_first.b64 %d1; createpolicy.fractional.L2::evict_last.b64 %d1, %f1;
        createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %d1, [%in], %r1, %r2;
        createpolicy.range.L2::evict_last.b64 %d1, [%in], 0x100000, 0x200000; createpolicy.cvt.L2.b64 %d2, %d1;
        sub.s64 %d3, %d2, %d1; st.global.b64 [%out], %d3;)",
        [](unsigned, const Slot&, Slot& out) { put(out, std::uint64_t{0}); }, ".const .align 64 .b8 constant[128];");
    for (const std::string body :
         {"prefetch.global [%in];", "prefetch.global.L3 [%in];", "prefetchu.L2 [%in];",
          "applypriority.global.L2::evict_normal [%in], 64;", "createpolicy.fractional.b64 %d1, 1.0;",
          "createpolicy.L2::evict_last.b64 %d1;", "discard.global.L2 [%in], 64;", "cvta.u64 %d1, %d2;",
          "cvta.shared.u32 %r1, %r2;", "mapa.shared::cta.u32 %r1, %r2, 0;", "mapa.u32 %r1, %r2, 0;",
          "alloca.u64 %d1, 16;"}) {
        CAPTURE(body);
        CHECK_FALSE(load_error(body).empty());
    }
    CHECK(load_error("mapa.shared::cluster.u32 %r1, %r2, 0;", "", "t4", "sm_75").find("clusters") != std::string::npos);
}

TEST_CASE("a read of discarded memory is reported")
{
    PtxRun run(lane_kernel(
        "shl.b32 %r1, %lane, 27; setp.eq.u32 %p1, %lane, 0; @%p1 discard.global.L2 [%all+128], 128; bar.warp.sync -1;"
        "ld.global.b32 %r2, [%all+124]; ld.global.b32 %r3, [%all+256]; @%p1 ld.global.b32 %r4, [%all+252];"
        "st.global.b32 [%all], %r2; st.global.b32 [%all+4], %r3; @%p1 st.global.b32 [%all+8], %r4;"));
    const std::uint64_t in = run.buffer(lane_input());
    const LaunchResult result = run.launch("k", {}, in, in);
    INFO(result.message, run.report.text());
    REQUIRE(result.code == 0);
    CHECK(run.count(FindingKind::uninitialized_global) == 1);
}

TEST_CASE("a kernel with more bytes of parameters than PTX allows is refused when it is loaded")
{
    PtxRun run(
        module_text("sm_90", ".visible .entry k(.param .align 8 .b8 map[42949672958], .param .f32 x) { ret; }\n"),
        "h200");
    const KernelInfo* const kernel = run.module().find_kernel("k");
    REQUIRE(kernel != nullptr);
    CHECK(kernel->load_error.find("the most is 32764") != std::string::npos);
    CHECK(kernel->parameters.empty());
}

}  // namespace tessera::emulator::test
