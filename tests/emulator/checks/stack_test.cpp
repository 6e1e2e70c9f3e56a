// A thread's stack: recursion ends with an error instead of taking all memory, and other calls have no limit.

#include <numeric>

#include "schedules.hpp"

namespace tessera::emulator::test {

namespace {

constexpr unsigned hardware_stack_error = 714;

/// `sum` adds the numbers from 1 to n; each lane has its own n. With `stop` = 0 it never ends. `first` and `second` do the
/// same in turn. `wide` uses 4000 bytes of its own, and `chain` calls it.
const std::string recursion = module_text("sm_80", R"(
.func (.param .b32 result) sum (.param .b32 n, .param .b32 stop)
{
    .reg .b32 %r<6>;
    .reg .pred %p;
    .local .align 4 .b8 own[24];
    ld.param.b32 %r1, [n];
    ld.param.b32 %r2, [stop];
    st.local.b32 [own], %r1;
    mov.b32 %r4, 0;
    setp.eq.u32 %p, %r1, 0;
    @%p setp.ne.u32 %p, %r2, 0;
    @%p bra done;
    sub.u32 %r3, %r1, 1;
    {
        .param .b32 to_n;
        .param .b32 to_stop;
        .param .b32 back;
        st.param.b32 [to_n], %r3;
        st.param.b32 [to_stop], %r2;
        call (back), sum, (to_n, to_stop);
        ld.param.b32 %r4, [back];
    }
    ld.local.b32 %r5, [own];
    add.u32 %r4, %r4, %r5;
done:
    st.param.b32 [result], %r4;
    ret;
}
.func second (.param .b32 n);
.func first (.param .b32 n)
{
    .reg .b32 %r<2>;
    .reg .pred %p;
    ld.param.b32 %r1, [n];
    setp.eq.u32 %p, %r1, 0;
    @%p ret;
    sub.u32 %r1, %r1, 1;
    {
        .param .b32 to;
        st.param.b32 [to], %r1;
        call second, (to);
    }
    ret;
}
.func second (.param .b32 n)
{
    .reg .b32 %r<2>;
    .local .align 8 .b8 own[40];
    ld.param.b32 %r1, [n];
    {
        .param .b32 to;
        st.param.b32 [to], %r1;
        call first, (to);
    }
    ret;
}
.func (.param .b32 result) wide (.param .b32 value)
{
    .reg .b32 %r<3>;
    .local .align 4 .b8 own[4000];
    ld.param.b32 %r1, [value];
    st.local.b32 [own+3996], %r1;
    ld.local.b32 %r2, [own+3996];
    st.param.b32 [result], %r2;
    ret;
}
.func (.param .b32 result) chain (.param .b32 value)
{
    .reg .b32 %r<3>;
    .local .align 4 .b8 own[4000];
    ld.param.b32 %r1, [value];
    {
        .param .b32 to;
        .param .b32 back;
        st.param.b32 [to], %r1;
        call (back), wide, (to);
        ld.param.b32 %r2, [back];
    }
    st.param.b32 [result], %r2;
    ret;
}
.visible .entry recurse (.param .u64 out, .param .u32 stop)
{
    .reg .b32 %r<5>;
    .reg .b64 %d<3>;
    ld.param.u64 %d1, [out];
    ld.param.u32 %r3, [stop];
    mov.u32 %r1, %tid.x;
    {
        .param .b32 to_n;
        .param .b32 to_stop;
        .param .b32 back;
        st.param.b32 [to_n], %r1;
        st.param.b32 [to_stop], %r3;
        call (back), sum, (to_n, to_stop);
        ld.param.b32 %r2, [back];
    }
    mad.wide.u32 %d2, %r1, 4, %d1;
    st.global.b32 [%d2], %r2;
    ret;
}
.visible .entry in_turn (.param .u32 n)
{
    .reg .b32 %r<2>;
    ld.param.u32 %r1, [n];
    {
        .param .b32 to;
        st.param.b32 [to], %r1;
        call first, (to);
    }
    ret;
}
.visible .entry not_recursive (.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %d<3>;
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    {
        .param .b32 to;
        .param .b32 back;
        st.param.b32 [to], %r1;
        call (back), chain, (to);
        ld.param.b32 %r2, [back];
    }
    mad.wide.u32 %d2, %r1, 4, %d1;
    st.global.b32 [%d2], %r2;
    ret;
}
)");

void expect_overflow(const PtxRun& run, const LaunchResult& result, const std::string& function)
{
    INFO(findings_text(run));
    CHECK(result.code == hardware_stack_error);
    REQUIRE(run.report.findings().size() == 1);
    const Finding finding = run.report.findings()[0];
    CHECK(finding.kind == FindingKind::stack_overflow);
    CHECK(finding.error);
    CHECK(finding.ptx_text.starts_with("call"));
    CHECK(finding.message.starts_with(function + " is called again"));
    CHECK(finding.message.find("cudaLimitStackSize") != std::string::npos);
}

}  // namespace

TEST_CASE("recursion within the stack of 1024 bytes gives the right result in each lane")
{
    std::vector<std::uint32_t> expected(30);
    for (std::uint32_t i = 0; i < expected.size(); ++i) {
        expected[i] = i * (i + 1) / 2;
    }
    under_every_schedule(recursion, "b200", [&](PtxRun& run) {
        const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(expected.size(), 0));
        const LaunchResult result = run.launch("recurse", {.block = {30, 1, 1}}, out, 1);
        REQUIRE_CLEAN(run, result);
        CHECK(run.read<std::uint32_t>(out, expected.size()) == expected);
    });
}

TEST_CASE("endless recursion ends with the error of a stack overflow, also without checks")
{
    for (const bool check : {true, false}) {
        under_every_schedule(recursion, "b200", [&](PtxRun& run) {
            run.options.check = check;
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(32, 0));
            const LaunchResult result = run.launch("recurse", {}, out, 0);
            expect_overflow(run, result, "sum");
        });
    }
}

TEST_CASE("functions that call each other in turn overflow the stack, too")
{
    under_every_schedule(recursion, "b200", [](PtxRun& run) {
        REQUIRE_CLEAN(run, run.launch("in_turn", {}, 12));
        const LaunchResult result = run.launch("in_turn", {}, 1'000'000);
        CHECK(result.code == hardware_stack_error);
        CHECK_FOUND(run, FindingKind::stack_overflow);
    });
}

TEST_CASE("a larger limit allows deeper recursion")
{
    under_every_schedule(
        recursion, "b200",
        [](PtxRun& run) {
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(200, 0));
            const LaunchResult small = run.launch("recurse", {.block = {200, 1, 1}}, out, 1);
            expect_overflow(run, small, "sum");
            run.report.clear();
            const LaunchResult large = run.launch("recurse", {.block = {200, 1, 1}, .stack_limit = 8192}, out, 1);
            REQUIRE_CLEAN(run, large);
            CHECK(run.read<std::uint32_t>(out, 200)[199] == 199 * 200 / 2);
        },
        2);
}

TEST_CASE("no limit makes a thread's stack larger than its local memory can be")
{
    PtxRun run(recursion);
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(1, 0));
    const LaunchResult result =
        run.launch("recurse", {.block = {1, 1, 1}, .stack_limit = std::uint64_t{1} << 40U}, out, 0);
    expect_overflow(run, result, "sum");
}

TEST_CASE("calls without recursion may need more than the limit, as a compiler knows how much")
{
    std::vector<std::uint32_t> expected(32);
    std::iota(expected.begin(), expected.end(), 0U);
    under_every_schedule(recursion, "b200", [&](PtxRun& run) {
        const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(32, 0));
        const LaunchResult result = run.launch("not_recursive", {}, out);
        REQUIRE_CLEAN(run, result);
        CHECK(run.read<std::uint32_t>(out, 32) == expected);
    });
}

}  // namespace tessera::emulator::test
