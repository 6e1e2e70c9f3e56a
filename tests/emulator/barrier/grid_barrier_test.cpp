// The workspace of cooperative launches, through which cooperative_groups synchronizes a grid: %envreg1 and %envreg2.

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// Each CTA writes its number, all wait at the workspace's barrier word, and each adds up all numbers. Without a
/// workspace a CTA only writes 1.
const std::string grid_sum = module_text("sm_90", R"(
.visible .entry grid_sum(.param .u64 values, .param .u64 sums)
{
    .reg .pred p; .reg .b32 r<12>; .reg .b64 d<12>;
    ld.param.u64 d0, [values];
    ld.param.u64 d1, [sums];
    mov.u32 r0, %ctaid.x;
    mov.u32 r1, %nctaid.x;
    mul.wide.u32 d2, r0, 4;
    add.u64 d3, d0, d2;
    add.u64 d4, d1, d2;
    mov.u32 r2, %envreg1;
    mov.u32 r3, %envreg2;
    mov.b64 d5, {r3, r2};
    setp.eq.u64 p, d5, 0;
    @p bra none;
    add.u32 r4, r0, 1;
    st.global.u32 [d3], r4;
    fence.acq_rel.gpu;
    atom.add.u32 r5, [d5+4], 1;
poll:
    ld.acquire.gpu.u32 r6, [d5+4];
    setp.lt.u32 p, r6, r1;
    @p bra poll;
    mov.u32 r7, 0;
    mov.u32 r8, 0;
sum:
    mul.wide.u32 d6, r8, 4;
    add.u64 d6, d0, d6;
    ld.global.u32 r9, [d6];
    add.u32 r7, r7, r9;
    add.u32 r8, r8, 1;
    setp.lt.u32 p, r8, r1;
    @p bra sum;
    st.global.u32 [d4], r7;
    ret;
none:
    st.global.u32 [d4], 1;
    ret;
}
)");

}  // namespace

TEST_CASE("the CTAs of a cooperative launch wait for each other through its workspace, launch after launch")
{
    under_every_schedule(
        grid_sum, "h200",
        [](PtxRun& run) {
            constexpr std::uint32_t ctas = 40;
            for (int repeat = 0; repeat < 2; ++repeat) {  // in the second launch the barrier word must be zero again
                const std::uint64_t values = run.uninitialized(4 * ctas);
                const std::uint64_t sums = run.uninitialized(4 * ctas);
                const LaunchResult result = run.launch(
                    "grid_sum", {.grid = {ctas, 1, 1}, .block = {1, 1, 1}, .cooperative = true}, values, sums);
                REQUIRE_CLEAN(run, result);
                for (const std::uint32_t sum : run.read<std::uint32_t>(sums, ctas)) {
                    CHECK(sum == ctas * (ctas + 1) / 2);
                }
            }
        },
        4);
}

TEST_CASE("launches that are not cooperative have no workspace")
{
    PtxRun run(grid_sum, "h200");
    const std::uint64_t values = run.uninitialized(16), sums = run.uninitialized(16);
    REQUIRE_CLEAN(run, run.launch("grid_sum", {.grid = {4, 1, 1}, .block = {1, 1, 1}}, values, sums));
    CHECK(run.read<std::uint32_t>(sums, 4) == std::vector<std::uint32_t>(4, 1));
}
