// Options::overruns_continue: accesses in the padding after an allocation are reported, and continue as on a GPU.

#include "lane_kernel.hpp"
#include "schedules.hpp"

namespace tessera::emulator::test {

namespace {

constexpr std::uint64_t granularity = AddressSpace::granularity;

/// Two buffers of 1000 bytes (24 of padding each). The first thread does `access`, with the first in d0 and the second in
/// d1.
std::string overrun_kernel(std::string_view access)
{
    return module_text("sm_90a", R"(
.visible .entry k(.param .u64 a, .param .u64 b)
{
    .reg .pred p; .reg .b32 r<8>; .reg .b64 d<8>;
    .shared .align 128 .b8 s[128];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [a];
    ld.param.u64 d1, [b];
    mov.u32 r0, %tid.x;
    setp.ne.u32 p, r0, 0;
    @p ret;
    )" + std::string(access) + R"(
    ret;
}
)");
}

struct Overrun {
    LaunchResult result;
    std::vector<std::uint8_t> first, second;
    std::vector<Finding> findings;
};

Overrun run_overrun(PtxRun& run, bool continues, bool checks = true)
{
    run.options.overruns_continue = continues;
    run.options.check = checks;
    const std::vector<std::uint8_t> bytes(1000, 7);
    const std::uint64_t a = run.buffer(bytes);
    const std::uint64_t b = run.buffer(bytes);
    Overrun overrun;
    overrun.result = run.launch("k", {}, a, b);
    overrun.first = run.read<std::uint8_t>(a, 1000);
    overrun.second = run.read<std::uint8_t>(b, 1000);
    overrun.findings = run.report.findings();
    return overrun;
}

/// The access continues with one finding, without the option it ends the launch, and no byte of an allocation changes
/// except the last `inside` ones of the first, which become zero.
void expect_tolerated(std::string_view access, std::size_t inside = 0)
{
    CAPTURE(access);
    under_every_schedule(
        overrun_kernel(access), "h200",
        [&](PtxRun& run) {
            const Overrun overrun = run_overrun(run, true);
            INFO(overrun.result.message, findings_text(run));
            CHECK(overrun.result.code == 0);
            REQUIRE(overrun.findings.size() == 1);
            CHECK(overrun.findings[0].kind == FindingKind::out_of_bounds);
            CHECK_FALSE(overrun.findings[0].error);
            CHECK(overrun.findings[0].message.find("after the end of the device allocation of 1000 bytes") !=
                  std::string::npos);
            std::vector<std::uint8_t> expected(1000, 7);
            CHECK(overrun.second == expected);
            std::fill_n(expected.end() - static_cast<std::ptrdiff_t>(inside), inside, std::uint8_t{0});
            CHECK(overrun.first == expected);
        },
        3);
    for (const bool checks : {true, false}) {
        PtxRun run(overrun_kernel(access), "h200");
        CHECK(run_overrun(run, false, checks).result.code == 700);
        PtxRun unchecked(overrun_kernel(access), "h200");
        CHECK(run_overrun(unchecked, true, checks).result.code == 0);
    }
}

constexpr const char* copy_to_shared = R"(
    mov.u32 r1, s; mov.u32 r2, bar;
    mbarrier.init.shared::cta.b64 [r2], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [r2], 32;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d2], 32, [r2];
wait:
    mbarrier.try_wait.parity.shared::cta.b64 p, [r2], 0;
    @!p bra wait;)";

}  // namespace

TEST_CASE("an access in the padding of an allocation is reported and continues, if asked")
{
    expect_tolerated("ld.global.b32 r1, [d0+1000];");
    expect_tolerated("ld.global.v4.b32 {r1,r2,r3,r4}, [d0+992];");
    expect_tolerated("ld.b32 r1, [d0+1020];");
    expect_tolerated("st.global.b32 [d0+1000], 0;");
    expect_tolerated("st.global.v4.b32 [d0+992], {0,0,0,0};", 8);
    expect_tolerated("st.global.b8 [d0+1023], 0;");
    expect_tolerated("red.global.add.u32 [d0+1000], 1;");
    expect_tolerated("atom.global.add.u32 r1, [d0+1020], 1;");
    expect_tolerated("mov.u32 r1, s; cp.async.ca.shared.global [r1], [d0+992], 16; cp.async.wait_all;");
    expect_tolerated(std::string("add.u64 d2, d0, 992;") + copy_to_shared);
    expect_tolerated(R"(
    mov.u32 r1, s; mov.u32 r2, 0; st.shared.v4.b32 [r1], {r2,r2,r2,r2};
    fence.proxy.async; add.u64 d2, d0, 992;
    cp.async.bulk.global.shared::cta.bulk_group [d2], [r1], 16;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;)",
                     8);
}

TEST_CASE("what was stored in the padding is read there again")
{
    const std::string ptx = overrun_kernel(
        "mov.u32 r1, 1234; st.global.b32 [d0+1004], r1; ld.global.b32 r2, [d0+1004]; "
        "st.global.b32 [d1], r2; ld.global.b32 r3, [d0+1008]; st.global.b32 [d1+4], r3;");
    PtxRun run(ptx, "h200");
    const Overrun overrun = run_overrun(run, true);
    CHECK(overrun.result.code == 0);
    std::uint32_t read[2];
    std::memcpy(read, overrun.second.data(), sizeof read);
    CHECK(read[0] == 1234);
    CHECK(read[1] == 0xFFFFFFFF);  // fresh memory
}

TEST_CASE("beyond the padding, before an allocation, and where there is no padding the kernel stops")
{
    static_assert(granularity == 512);
    for (const char* access :
         {"ld.global.b32 r1, [d0+1024];", "st.global.b8 [d0+1024], r0;", "ld.global.b64 d2, [d0+1024];",
          "ld.global.b32 r1, [d0+-4];", "mov.b64 d2, 0; ld.global.b32 r1, [d2];", "st.global.b32 [d0+5000], 0;",
          "mov.u32 r1, s; cp.async.ca.shared.global [r1], [d0+1024], 16; cp.async.wait_all;"}) {
        CAPTURE(access);
        PtxRun run(overrun_kernel(access), "h200");
        CHECK(run_overrun(run, true).result.code == 700);
        CHECK(run.count(FindingKind::out_of_bounds) == 1);
    }
    PtxRun crossing(overrun_kernel(std::string("add.u64 d2, d0, 1008;") + copy_to_shared), "h200");
    CHECK(run_overrun(crossing, true).result.code == 700);  // 16 of its 32 bytes are in the padding
    // On a GPU, variables of a module are next to each other.
    PtxRun variable(lane_kernel("ld.global.b32 %r1, [variable+8];", ".global .u32 variable[2];"), "b200");
    variable.options.overruns_continue = true;
    const std::uint64_t buffer = variable.buffer(std::vector<Slot>(32));
    CHECK(variable.launch("k", {}, buffer, buffer).code == 700);
}

}  // namespace tessera::emulator::test
