// Registers of a wgmma in flight. ptxas waits before it lets an instruction touch one, so the values are right; what PTX
// leaves undefined is reported at the instruction that needs the wait.

#include <algorithm>
#include <string_view>

#include "wgmma_kernel.hpp"

namespace tessera::emulator::test::warpgroup {
namespace {

const std::string started = prepared + fence + multiply + commit;
const std::string wait_but_one = "wgmma.wait_group.sync.aligned 1;\n";
const std::string store9 = "st.global.f32 [%out], %f9;\n";

/// Calls check(outcome) for each schedule and several seeds.
template <typename Check>
void in_every_schedule(const std::string& body, Check&& check)
{
    CAPTURE(body);
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        for (std::uint64_t seed = 1; seed <= (schedule == Schedule::in_order ? 1 : 8); ++seed) {
            CAPTURE(static_cast<int>(schedule));
            CAPTURE(seed);
            const Outcome outcome = execute(body, 128, schedule, seed);
            INFO(outcome.text(), outcome.result.message);
            CHECK(outcome.result.code == 0);
            check(outcome);
        }
    }
}

void check_values(const Outcome& outcome, float value)
{
    const auto different = std::count_if(outcome.values.begin(), outcome.values.begin() + 128,
                                         [&](float stored) { return stored != value; });
    CHECK(different == 0);
    CHECK(outcome.values[77] == value);
}

void expect_clean(const std::string& body, float value)
{
    in_every_schedule(body, [&](const Outcome& outcome) {
        CHECK(outcome.text() == "");
        check_values(outcome, value);
    });
    check_values(execute(body, 128, Schedule::adversarial, 1, false), value);
}

/// The value is right, and `instruction` is the one that is reported.
void expect_found(const std::string& body, std::string_view instruction, float value,
                  FindingKind kind = FindingKind::async_read_pending)
{
    CAPTURE(instruction);
    in_every_schedule(body, [&](const Outcome& outcome) {
        const auto& findings = outcome.run->report.findings();
        CHECK(std::ranges::any_of(
            findings, [&](const Finding& finding) { return finding.kind == kind && finding.ptx_text == instruction; }));
        CHECK(std::ranges::all_of(findings, [&](const Finding& finding) { return finding.kind == kind; }));
        check_values(outcome, value);
    });
    check_values(execute(body, 128, Schedule::adversarial, 1, false), value);
}

const std::string half_product = "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {%r0,%r1,%r2,%r3}, ";
/// The bytes of bf16 ones are 1.875 as f16, so this adds 56.25.
const std::string half_multiply = half_product + "%a, %b, 0, 1, 1, 0, 0;\n";
const std::string store_half = "cvt.f32.f16 %f9, %h1;\n" + store9;

}  // namespace

TEST_CASE("moves of an accumulator in flight give the value, and using it after the wait is no fault")
{
    expect_clean(started + "mov.f32 %f9, %f0;\n" + wait + store9, 16.0F);
    expect_clean(prepared + fence + multiply + "mov.f32 %f9, %f0;\n" + commit + wait + store9, 16.0F);
    expect_clean(
        started + "mov.b64 %d0, {%f2, %f3};\nmov.b64 %d1, %d0;\n" + wait + "mov.b64 {%f8, %f9}, %d1;\n" + store9,
        16.0F);
    expect_clean(started + "mov.b64 %d0, {%f2, %f3};\nmov.b64 {%f8, %f9}, %d0;\n" + wait + store9, 16.0F);
    expect_clean(prepared + fence + half_multiply + commit + "mov.b32 {%h0, %h1}, %r3;\n" + wait + store_half, 56.25F);
    expect_clean(prepared + fence + half_multiply + "mov.b32 {%h0, %h1}, %r3;\n" + commit + wait +
                     "mov.b32 %r9, {%h1, %h0};\nmov.b32 {%h2, %h1}, %r9;\n" + store_half,
                 56.25F);
    expect_clean(
        started + "setp.lt.u32 %p, %me, 50;\nmov.f32 %f9, 0f41800000;\n@%p mov.f32 %f9, %f0;\n" + wait + store9, 16.0F);
    // A second wgmma of the same accumulator does not change what was moved.
    expect_clean(started + "mov.f32 %f9, %f0;\n" + multiply + commit + wait + store9, 16.0F);
    // The copies are the accumulator of the next wgmma.
    const std::string copies = "mov.f32 %f8, %f0;\nmov.f32 %f9, %f1;\nmov.f32 %f10, %f2;\nmov.f32 %f11, %f3;\n";
    expect_clean(
        started + copies + fence +
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f8,%f9,%f10,%f11}, %a, %b, 1, 1, 1, 0, 0;\n" +
            commit + wait + store9,
        32.0F);
}

TEST_CASE("a moved value that is used before the wait is reported")
{
    expect_found(started + "mov.f32 %f8, %f0;\nadd.f32 %f9, %f8, %f8;\n" + wait + store9, "add.f32 %f9, %f8, %f8;",
                 32.0F);
    expect_found(started + "mov.b64 %d0, {%f2, %f3};\nmov.b64 {%f8, %f9}, %d0;\nst.global.f32 [%out], %f9;\n" + wait,
                 "st.global.f32 [%out], %f9;", 16.0F);
    expect_found(prepared + fence + half_multiply + commit + "mov.b32 {%h0, %h1}, %r3;\n" + store_half,
                 "cvt.f32.f16 %f9, %h1;", 56.25F);
    // The wait for the first group does not cover the second.
    expect_found(started + multiply + commit + "mov.f32 %f9, %f0;\n" + wait_but_one + store9,
                 "st.global.f32 [%out], %f9;", 32.0F);
}

TEST_CASE("an accumulator that is used before the wait is reported where it is used")
{
    const std::string add = "add.f32 %f9, %f0, %f1;";
    expect_found(started + add + "\n" + wait + store9, add, 32.0F);
    expect_found(prepared + fence + multiply + add + "\n" + commit + wait + store9, add, 32.0F);
    expect_found(started + "add.f32 %f0, %f0, %f1;\n" + wait + store, "add.f32 %f0, %f0, %f1;", 32.0F);
    expect_found(started + store, "st.global.f32 [%out], %f0;", 16.0F);
    expect_found(prepared + fence + multiply + wait + store, "st.global.f32 [%out], %f0;", 16.0F);  // no commit
    // After a branch, which one warp and all warps take.
    for (const std::string bound : {"32", "128"}) {
        expect_found(started + "setp.lt.u32 %p, %me, " + bound + ";\nmov.f32 %f9, 0f42000000;\n@!%p bra DONE;\n" + add +
                         "\nDONE:\n" + wait + store9,
                     add, 32.0F);
    }
    // In a loop.
    expect_found(started +
                     "mov.f32 %f9, 0f00000000;\nmov.u32 %z, 4;\nLOOP:\nadd.f32 %f9, %f9, %f0;\n"
                     "sub.u32 %z, %z, 1;\nsetp.ne.u32 %p, %z, 0;\n@%p bra LOOP;\n" +
                     wait + store9,
                 "add.f32 %f9, %f9, %f0;", 64.0F);
}

TEST_CASE("a loop that keeps a group in flight needs a last wait")
{
    const std::string loop = prepared + "mov.u32 %z, 4;\nLOOP:\n" + fence + multiply + commit + wait_but_one +
                             "sub.u32 %z, %z, 1;\nsetp.ne.u32 %p, %z, 0;\n@%p bra LOOP;\n";
    expect_clean(loop + wait + store, 64.0F);
    expect_found(loop + store, "st.global.f32 [%out], %f0;", 64.0F);
}

TEST_CASE("work on one accumulator while another is in flight is no fault")
{
    const std::string other =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f4,%f5,%f6,%f7}, %a, %b, 0, 1, 1, 0, 0;\n";
    const std::string softmax = "add.f32 %f0, %f0, %f1;\nmul.f32 %f2, %f0, %f3;\nmov.b64 %d0, {%f0, %f2};\n";
    expect_clean(started + other + commit + wait_but_one + softmax + wait + "add.f32 %f9, %f2, %f4;\n" + store9,
                 528.0F);
    expect_found(started + other + commit + wait_but_one + softmax + "add.f32 %f9, %f2, %f4;\n" + store9 + wait,
                 "add.f32 %f9, %f2, %f4;", 528.0F);
}

TEST_CASE("each warp of the warpgroup must commit and wait")
{
    const std::string first_warp = "setp.lt.u32 %p, %me, 32;\n@!%p bra SKIP;\n";
    const std::string half = "setp.lt.u32 %p, %me, 64;\n@!%p bra SKIP;\n";
    const std::string use = "st.global.f32 [%out], %f0;";
    expect_found(prepared + fence + multiply + first_warp + commit + "SKIP:\n" + wait + store, use, 16.0F);
    expect_found(started + half + wait + "SKIP:\n" + store, use, 16.0F);
    const Outcome outcome = execute(started + half + wait + "SKIP:\n" + store);
    for (const Finding& finding : outcome.run->report.findings()) {
        CHECK(finding.warp >= 2);
    }
}

TEST_CASE("registers that are written between wgmma.fence and the wgmma are reported")
{
    const FindingKind kind = FindingKind::invalid_operand;
    const std::string_view wgmma(multiply.data(), multiply.size() - 1);
    const std::string change = "add.f32 %f0, %f0, 0f3F800000;\n";
    expect_clean(prepared + change + fence + multiply + commit + wait + store, 17.0F);
    expect_found(prepared + fence + change + multiply + commit + wait + store, wgmma, 17.0F, kind);
    const std::string second = multiply + commit + wait + store;
    expect_clean(started + wait + change + fence + second, 33.0F);
    expect_found(started + wait + fence + change + second, wgmma, 33.0F, kind);
    expect_found(started + wait + "setp.lt.u32 %p, %me, 200;\n@!%p bra NEXT;\n" + change + "NEXT:\n" + second, wgmma,
                 33.0F, kind);
    const Outcome outcome = execute(prepared + fence + change + multiply + commit + wait + store);
    CHECK(outcome.text().find("was written by \"add.f32 %f0, %f0, 0f3F800000;\"") != std::string::npos);

    // The same for A.
    const std::string a = "mov.b32 %r0, 0x3f803f80;\nmov.b32 %r1, %r0;\nmov.b32 %r2, %r0;\n";
    const std::string last = "mov.b32 %r3, %r0;\n";
    const std::string from_registers =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, %b, 1, 1, 1, 0;";
    expect_clean(prepared + a + last + fence + from_registers + "\n" + commit + wait + store, 16.0F);
    expect_found(prepared + a + fence + last + from_registers + "\n" + commit + wait + store, from_registers, 16.0F,
                 kind);
}

TEST_CASE("registers that are written while the wgmma is in flight are reported where they are written")
{
    const std::string write = "mov.f32 %f0, 0f3F800000;";
    expect_found(started + write + "\n" + wait + store, write, 1.0F);
    expect_found(prepared + fence + multiply + write + "\n" + commit + wait + store, write, 1.0F);
    expect_clean(started + wait + write + "\n" + store, 1.0F);
    const std::string a =
        "mov.b32 %r0, 0x3f803f80;\nmov.b32 %r1, %r0;\nmov.b32 %r2, %r0;\nmov.b32 %r3, %r0;\n" + fence +
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, %b, "
        "1, 1, 1, 0;\n" +
        commit;
    // Also a write of the same value.
    expect_found(prepared + a + "mov.b32 %r1, 0x3f803f80;\n" + wait + store, "mov.b32 %r1, 0x3f803f80;", 16.0F);
    expect_clean(prepared + a + wait + "mov.b32 %r1, 0x3f803f80;\n" + store, 16.0F);
}

TEST_CASE("an accumulator that is the next wgmma's A needs a wait")
{
    const std::string next =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, %b, 0, 1, 1, 0;";
    const float value = 16 * 56.25F * 1.875F;
    expect_clean(prepared + fence + half_multiply + commit + wait + fence + next + "\n" + commit + wait + store, value);
    expect_found(prepared + fence + half_multiply + commit + fence + next + "\n" + commit + wait + store, next, value);
}

}  // namespace tessera::emulator::test::warpgroup
