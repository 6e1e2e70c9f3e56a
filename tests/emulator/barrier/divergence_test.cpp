// Lanes of a warp that take very different times to an .aligned instruction, and lanes that never come.

#include <fmt/format.h>

#include "run_ptx.hpp"
#include "schedules.hpp"

namespace {

using namespace tessera::emulator;
using namespace tessera::emulator::test;

/// A kernel with its thread number in %me, the CTA's number in %cta and 64-bit addresses of its two arguments in %out
/// and %flags.
std::string kernel(const std::string& body, const std::string& functions = {})
{
    return module_text("sm_90", functions + R"(
.visible .entry k(.param .u64 out, .param .u64 flags)
{
    .shared .align 8 .b8 shared[64];
    .reg .b32 %me, %cta, %r<20>; .reg .b64 %out, %flags, %at, %state; .reg .pred %p<6>;
    ld.param.u64 %out, [out];
    ld.param.u64 %flags, [flags];
    mov.u32 %me, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mul.wide.u32 %at, %me, 4;
    add.u64 %at, %at, %out;
)" + body + "    ret;\n}\n");
}

/// `steps` iterations that only count, in %r10.
std::string serial_work(unsigned steps)
{
    return fmt::format(
        "    mov.u32 %r10, 0;\nWORK:\n    add.u32 %r10, %r10, 1;\n    setp.lt.u32 %p5, %r10, {};\n"
        "    @%p5 bra WORK;\n",
        steps);
}

/// Launches `text`; requires no finding and out[i] = expected(i), under every schedule.
template <typename Expected>
void require_right(const std::string& text, const Shape& shape, Expected&& expected, unsigned seeds = 4)
{
    under_every_schedule(
        text, "h200",
        [&](PtxRun& run) {
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(shape.block.x));
            const std::uint64_t flags = run.buffer(std::vector<std::uint32_t>(16));
            const LaunchResult result = run.launch("k", shape, out, flags);
            REQUIRE_CLEAN(run, result);
            const std::vector<std::uint32_t> values = run.read<std::uint32_t>(out, shape.block.x);
            for (std::uint32_t i = 0; i < shape.block.x; ++i) {
                REQUIRE(values[i] == expected(i));
            }
        },
        seeds);
}

/// Launches `text`; requires the finding under every schedule.
void require_divergent(const std::string& text, const Shape& shape = {})
{
    under_every_schedule(
        text, "h200",
        [&](PtxRun& run) {
            const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(shape.block.x));
            const std::uint64_t flags = run.buffer(std::vector<std::uint32_t>(16));
            run.launch("k", shape, out, flags);
            CHECK_FOUND(run, FindingKind::divergent_aligned);
        },
        4);
}

}  // namespace

TEST_CASE("a barrier waits for the lane that does serial work, however long it takes")
{
    const std::string text = kernel("    setp.ne.u32 %p0, %me, 0;\n    @%p0 bra JOIN;\n" + serial_work(100'000) + R"(
    st.shared.u32 [shared], %r10;
JOIN:
    bar.sync 0;
    ld.shared.u32 %r1, [shared];
    st.global.u32 [%at], %r1;
)");
    require_right(text, {.block = {64, 1, 1}}, [](std::uint32_t) { return 100'000u; }, 3);
}

TEST_CASE("a barrier waits for the lane that polls another CTA's flag")
{
    const std::string text = kernel(
        "    setp.ne.u32 %p0, %me, 0;\n    setp.ne.u32 %p1, %cta, 0;\n    @%p1 bra OTHER;\n"
        "    @%p0 bra JOIN;\n" +
        serial_work(40'000) + R"(
    st.release.gpu.global.u32 [%flags], 7;
    bra JOIN;
OTHER:
    @%p0 bra JOIN;
POLL:
    ld.acquire.gpu.global.u32 %r1, [%flags];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra POLL;
    st.shared.u32 [shared], %r1;
JOIN:
    bar.sync 0;
    @!%p1 bra DONE;
    ld.shared.u32 %r2, [shared];
    st.global.u32 [%at], %r2;
DONE:
)");
    require_right(text, {.grid = {2, 1, 1}, .block = {64, 1, 1}}, [](std::uint32_t) { return 7u; });
}

TEST_CASE("a barrier waits for an elected producer of 1024 steps")
{
    // Lane 0 of warp 0 fills a stage of one word for warp 1, step by step; the other lanes go to the last barrier.
    const std::string text = kernel(R"(
    setp.ne.u32 %p0, %me, 0;
    @%p0 bra READY;
    mbarrier.init.shared.b64 [shared+8], 1;
    mbarrier.init.shared.b64 [shared+16], 32;
READY:
    bar.sync 0;
    setp.ge.u32 %p1, %me, 32;
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
    @%p1 bra CONSUME;
    @%p0 bra JOIN;
PRODUCE:
    st.shared.u32 [shared], %r1;
    mbarrier.arrive.shared.b64 %state, [shared+8];
    and.b32 %r3, %r1, 1;
EMPTY:
    mbarrier.try_wait.parity.shared.b64 %p2, [shared+16], %r3;
    @!%p2 bra EMPTY;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p3, %r1, 1024;
    @%p3 bra PRODUCE;
    bra JOIN;
CONSUME:
    and.b32 %r3, %r1, 1;
FULL:
    mbarrier.try_wait.parity.shared.b64 %p2, [shared+8], %r3;
    @!%p2 bra FULL;
    ld.shared.u32 %r4, [shared];
    add.u32 %r2, %r2, %r4;
    mbarrier.arrive.shared.b64 %state, [shared+16];
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p3, %r1, 1024;
    @%p3 bra CONSUME;
JOIN:
    bar.sync 0;
    st.global.u32 [%at], %r2;
)");
    require_right(text, {.block = {64, 1, 1}}, [](std::uint32_t i) { return i < 32 ? 0u : 1024u * 1023 / 2; });
}

TEST_CASE("lanes of one warp take a ticket lock in turn and then meet at a barrier")
{
    // The lane with the next ticket may wait where the loop ends until lanes that spin in it have theirs.
    const std::string text = kernel(R"(
    atom.global.add.u32 %r1, [%flags], 1;
SPIN:
    ld.volatile.global.u32 %r2, [%flags+4];
    setp.ne.u32 %p0, %r1, %r2;
    @%p0 bra SPIN;
    ld.volatile.global.u32 %r3, [%flags+8];
    add.u32 %r3, %r3, 1;
    st.volatile.global.u32 [%flags+8], %r3;
    membar.gl;
    add.u32 %r2, %r2, 1;
    st.volatile.global.u32 [%flags+4], %r2;
    bar.sync 0;
    ld.volatile.global.u32 %r4, [%flags+8];
    st.global.u32 [%at], %r4;
)");
    require_right(text, {.block = {40, 1, 1}}, [](std::uint32_t) { return 40u; }, 6);
}

TEST_CASE("a lane that spins until another lane of its warp has set a flag makes progress")
{
    const std::string text = kernel(R"(
    setp.ne.u32 %p0, %me, 3;
    @%p0 bra AFTER;
SPIN:
    ld.volatile.global.u32 %r1, [%flags];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra SPIN;
AFTER:
    setp.ne.u32 %p2, %me, 9;
    @%p2 bra JOIN;
    st.volatile.global.u32 [%flags], 5;
JOIN:
    bar.sync 0;
    ld.volatile.global.u32 %r2, [%flags];
    st.global.u32 [%at], %r2;
)");
    require_right(text, {.block = {32, 1, 1}}, [](std::uint32_t) { return 5u; });
}

TEST_CASE("lanes that enter a function long before the others meet them at its barriers and shuffles")
{
    const std::string function = R"(
.func (.param .b32 result) inner(.param .b32 value)
{
    .reg .b32 %v, %w; .reg .b64 %d; .reg .pred %odd;
    ld.param.b32 %v, [value];
    cvt.u64.u32 %d, %v;
    and.b32 %w, %v, 1;
    setp.ne.u32 %odd, %w, 0;
    bar.sync 0;
    shfl.sync.bfly.b32 %v, %v, 1, 31, 0xffffffff;
    cvt.u32.u64 %w, %d;
    mad.lo.u32 %v, %w, 1000, %v;
    @%odd add.u32 %v, %v, 1000000;
    st.param.b32 [result], %v;
    ret;
}
.func (.param .b32 result) outer(.param .b32 value)
{
    .reg .b32 %v, %twice; .param .b32 a; .param .b32 b;
    ld.param.b32 %v, [value];
    add.u32 %twice, %v, %v;
    st.param.b32 [a], %v;
    call (b), inner, (a);
    ld.param.b32 %v, [b];
    add.u32 %v, %v, %twice;
    st.param.b32 [result], %v;
    ret;
}
)";
    const std::string text = kernel("    setp.ne.u32 %p0, %me, 2;\n    @%p0 bra JOIN;\n" + serial_work(30'000) + R"(
JOIN:
    {
    .param .b32 a; .param .b32 b;
    st.param.b32 [a], %me;
    call (b), outer, (a);
    ld.param.b32 %r1, [b];
    }
    st.global.u32 [%at], %r1;
)",
                                    function);
    require_right(text, {.block = {32, 1, 1}},
                  [](std::uint32_t i) { return 1000 * i + (i ^ 1) + 2 * i + (i % 2 == 1 ? 1'000'000u : 0u); });
}

TEST_CASE("a barrier in a branch that other lanes do not take is reported, also in a loop")
{
    require_divergent(kernel(R"(
    setp.lt.u32 %p0, %me, 16;
    mov.u32 %r1, 0;
AGAIN:
    @!%p0 bra JOIN;
    bar.sync 0;
JOIN:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 4;
    @%p1 bra AGAIN;
)"));
}

TEST_CASE("a barrier in a loop that the lanes leave one after the other is reported")
{
    require_divergent(kernel(R"(
    mov.u32 %r1, 0;
AGAIN:
    bar.sync 0;
    add.u32 %r1, %r1, 1;
    setp.le.u32 %p1, %r1, %me;
    @%p1 bra AGAIN;
    st.global.u32 [%at], %r1;
)"));
}

TEST_CASE("lanes that return early do not hold up a barrier, wherever they return from")
{
    // As nvcc writes two returns, one after the other; then a loop that lanes leave one after the other, to return.
    require_right(kernel(R"(
    setp.ge.u32 %p0, %me, 60;
    @%p0 bra END;
    and.b32 %r1, %me, 8;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra END;
    bar.sync 0;
    st.global.u32 [%at], 7;
    bar.sync 0;
END:
)"),
                  {.block = {96, 1, 1}}, [](std::uint32_t i) { return i < 60 && (i & 8) == 0 ? 7u : 0u; });
    require_right(kernel(R"(
    mov.u32 %r1, 0;
AGAIN:
    st.global.u32 [%at], %r1;
    add.u32 %r1, %r1, 1;
    setp.gt.u32 %p1, %r1, %me;
    @%p1 bra END;
    bar.sync 0;
    bra AGAIN;
END:
)"),
                  {.block = {64, 1, 1}}, [](std::uint32_t i) { return i; });
}

TEST_CASE("lanes that exit after the others have arrived at a barrier count as arrived")
{
    for (const char* barrier : {"barrier.sync 0;", "barrier.sync 1, 64;"}) {
        CAPTURE(barrier);
        require_right(
            kernel("    and.b32 %r1, %me, 1;\n    setp.ne.u32 %p0, %r1, 0;\n    @%p0 bra LEAVE;\n    " +
                   std::string(barrier) + "\n    st.global.u32 [%at], 7;\n    ret;\nLEAVE:\n" + serial_work(300)),
            {.block = {64, 1, 1}}, [](std::uint32_t i) { return i % 2 == 0 ? 7u : 0u; });
    }
}

TEST_CASE("lanes at different barriers of a loop are reported, while another warp keeps running")
{
    require_divergent(kernel(R"(
    setp.ge.u32 %p0, %me, 32;
    @%p0 bra BUSY;
    setp.lt.u32 %p1, %me, 16;
    mov.u32 %r1, 0;
AGAIN:
    @%p1 bra SECOND;
    barrier.sync.aligned 1, 32;
    bra JOIN;
SECOND:
    barrier.sync.aligned 2, 32;
JOIN:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, 2;
    @%p2 bra AGAIN;
    st.volatile.global.u32 [%flags], 1;
    ret;
BUSY:
    ld.volatile.global.u32 %r2, [%flags+4];
    setp.lt.u32 %p3, %r2, 100;
    atom.global.add.u32 %r2, [%flags+4], 1;
    @%p3 bra BUSY;
)"),
                      {.block = {64, 1, 1}});
}

TEST_CASE("a lane that spins for what the others do after a barrier is a deadlock")
{
    const std::string text = kernel(R"(
    setp.ne.u32 %p0, %me, 0;
    @%p0 bra JOIN;
SPIN:
    ld.volatile.global.u32 %r1, [%flags];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra SPIN;
JOIN:
    bar.sync 0;
    st.volatile.global.u32 [%flags], 5;
)");
    PtxRun run(text, "h200");
    run.options.hang_limit = 200'000;
    run.options.hang_seconds = 0;
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(32));
    const LaunchResult result = run.launch("k", {}, out, run.buffer(std::vector<std::uint32_t>(16)));
    CHECK(result.code == 702);
    CHECK_FOUND(run, FindingKind::deadlock);
    CHECK(result.message.find("waits for lanes 0x00000001 of its warp") != std::string::npos);
}
