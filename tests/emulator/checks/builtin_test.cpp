// Functions that the machine provides to device code: printf, assert, malloc and free; and trap.

#include <cstdint>
#include <string>
#include <vector>

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// A string with this name in global memory.
std::string text_variable(const std::string& name, const std::string& text)
{
    std::string bytes;
    for (const char c : text) {
        bytes += std::to_string(static_cast<int>(c)) + ", ";
    }
    return ".global .align 1 .b8 " + name + "[" + std::to_string(text.size() + 1) + "] = {" + bytes + "0};\n";
}

/// r0: thread; d0: `out`; p<2>, q: parameters of calls and their result.
std::string kernel(const std::string& declarations, const std::string& body)
{
    return module_text("sm_80", declarations + R"(
.visible .entry k(.param .u64 out)
{
    .reg .pred t; .reg .b32 r<8>; .reg .b64 d<8>;
    .local .align 8 .b8 arguments[24];
    .param .b64 p0; .param .b64 p1; .param .b32 line; .param .b64 p3; .param .b64 p4; .param .b32 q; .param .b64 v;
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
)" + body + R"(
    ret;
}
)");
}

const std::string declare_print = ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n";
const std::string declare_assert =
    ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n";
const std::string declare_heap =
    ".extern .func (.param .b64 r) malloc(.param .b64 a);\n.extern .func free(.param .b64 a);\n";

std::uint64_t out_buffer(PtxRun& run) { return run.buffer(std::vector<std::uint32_t>(64)); }

}  // namespace

TEST_CASE("printf formats each lane's arguments, and returns the length of the format")
{
    const std::string ptx =
        kernel(declare_print + text_variable("format", "thread %d of %s: %5.2f%%\n") + text_variable("name", "two"),
               R"(
    st.local.u32 [arguments], r0;
    mov.u64 d1, name;
    cvta.global.u64 d1, d1;
    st.local.u64 [arguments+8], d1;
    mov.u64 d2, format;
    cvta.global.u64 d2, d2;
    st.param.b64 [p0], d2;
    mov.u64 d3, arguments;
    cvta.local.u64 d3, d3;
    st.param.b64 [p1], d3;
    st.local.f64 [arguments+16], 0d4028800000000000;
    call.uni (q), vprintf, (p0, p1);
    ld.param.b32 r1, [q];
    st.global.u32 [d0], r1;
)");
    under_every_schedule(
        ptx, "b200",
        [](PtxRun& run) {
            const std::uint64_t out = out_buffer(run);
            const LaunchResult result = run.launch("k", {.block = {2, 1, 1}}, out);
            REQUIRE_CLEAN(run, result);
            CHECK(run.printed == "thread 0 of two: 12.25%\nthread 1 of two: 12.25%\n");
            CHECK(run.read<std::uint32_t>(out, 1)[0] == 25);
        },
        2);
}

TEST_CASE("an assertion that fails ends the launch with its place and text; one that holds does nothing")
{
    const auto ptx = [](const char* limit) {
        return kernel(declare_assert + text_variable("what", "i < n") + text_variable("file", "a.cu") +
                          text_variable("function", "void k()"),
                      "    setp.lt.u32 t, r0, " + std::string(limit) + R"(;
    @t bra holds;
    mov.u64 d1, what; cvta.global.u64 d1, d1; st.param.b64 [p0], d1;
    mov.u64 d1, file; cvta.global.u64 d1, d1; st.param.b64 [p1], d1;
    st.param.b32 [line], 7;
    mov.u64 d1, function; cvta.global.u64 d1, d1; st.param.b64 [p3], d1;
    st.param.b64 [p4], 1;
    call __assertfail, (p0, p1, line, p3, p4);
holds:
    bar.sync 0;
)");
    };
    under_every_schedule(
        ptx("40"), "b200",
        [](PtxRun& run) {
            const LaunchResult result = run.launch("k", {.block = {64, 1, 1}}, out_buffer(run));
            CHECK(result.code == 710);  // cudaErrorAssert
            CHECK_FOUND(run, FindingKind::assertion);
            REQUIRE(run.report.findings().size() == 1);
            CHECK(run.report.findings().front().message ==
                  "a.cu:7: void k(): block: [0,0,0], thread: [40,0,0] Assertion `i < n` failed.");
        },
        4);
    under_every_schedule(
        ptx("64"), "b200",
        [](PtxRun& run) {
            const LaunchResult result = run.launch("k", {.block = {64, 1, 1}}, out_buffer(run));
            REQUIRE_CLEAN(run, result);
        },
        4);
}

TEST_CASE("a trap ends the launch in every schedule")
{
    under_every_schedule(
        kernel("", "    setp.ne.u32 t, r0, 40;\n    @!t trap;\n    bar.sync 0;\n"), "b200",
        [](PtxRun& run) {
            CHECK(run.launch("k", {.block = {64, 1, 1}}, out_buffer(run)).code == 719);  // cudaErrorLaunchFailure
            REQUIRE(run.report.findings().size() == 1);
            CHECK(run.report.findings().front().kind == FindingKind::trap);
            CHECK(run.report.findings().front().lanes == 1U << 8);
        },
        3);
}

TEST_CASE("device malloc gives each lane memory of its own, which free takes back; free of anything else is reported")
{
    const auto ptx = [](const std::string& freed) {
        return kernel(declare_heap, R"(
    st.param.b64 [p0], 64;
    call.uni (v), malloc, (p0);
    ld.param.b64 d1, [v];
    st.u32 [d1+60], r0;
    ld.u32 r1, [d1+60];
    mul.wide.u32 d2, r0, 4;
    add.u64 d2, d0, d2;
    st.global.u32 [d2], r1;
    add.u64 d3, d1, )" + freed + R"(;
    st.param.b64 [p1], d3;
    call.uni free, (p1);
)");
    };
    under_every_schedule(
        ptx("0"), "b200",
        [](PtxRun& run) {
            const std::uint64_t out = out_buffer(run);
            const LaunchResult result = run.launch("k", {}, out);
            REQUIRE_CLEAN(run, result);
            const auto values = run.read<std::uint32_t>(out, 32);
            for (std::uint32_t i = 0; i < 32; ++i) {
                REQUIRE(values[i] == i);
            }
        },
        2);
    under_every_schedule(
        ptx("8"), "b200",
        [](PtxRun& run) {
            CHECK(run.launch("k", {}, out_buffer(run)).code != 0);
            CHECK_FOUND(run, FindingKind::invalid_operand);
            CHECK(run.report.findings().front().message.find("not a pointer that device malloc returned") !=
                  std::string::npos);
        },
        2);
}

TEST_CASE("device malloc gives no more memory than the heap has, and what is freed can be had again")
{
    // Each thread counts the pieces of 4096 bytes that it gets, up to 5, and frees the last one.
    const std::string ptx = kernel(declare_heap, R"(
    mov.b32 r1, 0;
    mov.b64 d3, 0;
more:
    st.param.b64 [p0], 4096;
    call.uni (v), malloc, (p0);
    ld.param.b64 d1, [v];
    setp.eq.u64 t, d1, 0;
    @t bra done;
    mov.b64 d3, d1;
    add.u32 r1, r1, 1;
    setp.lt.u32 t, r1, 5;
    @t bra more;
done:
    mul.wide.u32 d2, r0, 4;
    add.u64 d2, d0, d2;
    st.global.u32 [d2], r1;
    st.param.b64 [p1], d3;
    call.uni free, (p1);
)");
    under_every_schedule(
        ptx, "b200",
        [](PtxRun& run) {
            const std::uint64_t out = out_buffer(run);
            const auto got = [&](std::uint64_t limit) {
                REQUIRE_CLEAN(run, run.launch("k", {.block = {1, 1, 1}, .heap_limit = limit}, out));
                return run.read<std::uint32_t>(out, 1)[0];
            };
            CHECK(got(4095) == 0);
            CHECK(got(3 * 4096) == 3);  // two stay
            CHECK(got(3 * 4096) == 1);
            CHECK(got(8 << 20) == 5);
        },
        2);
    PtxRun foreign(kernel(declare_heap, "    st.param.b64 [p1], d0;\n    call.uni free, (p1);\n"), "b200");
    CHECK(foreign.launch("k", {.block = {1, 1, 1}}, out_buffer(foreign)).code != 0);
    CHECK_FOUND(foreign, FindingKind::invalid_operand);
}

TEST_CASE("a call with too few arguments is refused when the module is loaded")
{
    const PtxRun run(kernel(".extern .func (.param .b32 r) vprintf(.param .b64 a);\n",
                            "    st.param.b64 [p0], 0;\n    call.uni (q), vprintf, (p0);\n"),
                     "b200");
    CHECK(run.module().find_kernel("k")->load_error.find("vprintf takes 2 arguments, not 1") != std::string::npos);
}
