// Undefined values are followed through the registers: dropping one is not reported, using one is.

#include "../memory/lane_kernel.hpp"

namespace tessera::emulator::test {

namespace {

/// `body` has an undefined local variable in %r1, a defined one (5) in %r2, and %p1 is true in lanes 0 to 15.
LaneResult run_with_undefined(const std::string& body)
{
    return run_lanes(
        lane_kernel(".local .align 8 .b8 l[16]; st.local.b32 [l+4], 5; ld.local.b32 %r1, [l];\n"
                    "ld.local.b32 %r2, [l+4]; setp.lt.u32 %p1, %lane, 16;\n" +
                        body,
                    ".global .align 8 .b8 sink[64]; .global .u32 zeros[64];"));
}

void expect_clean(const std::string& body)
{
    CAPTURE(body);
    const LaneResult result = run_with_undefined(body);
    INFO(result.launch.message, result.report);
    CHECK(result.launch.code == 0);
    CHECK(result.findings.empty());
}

void expect_used(const std::string& body, LaneMask lanes = all_lanes)
{
    CAPTURE(body);
    const LaneResult result = run_with_undefined(body);
    INFO(result.launch.message, result.report);
    REQUIRE(result.findings.size() == 1);
    CHECK(result.findings[0].kind == FindingKind::uninitialized_local);
    CHECK(result.findings[0].ptx_text == "ld.local.b32 %r1, [l];");  // where it was read
    CHECK(result.findings[0].lanes == lanes);
    CHECK(result.findings[0].message.find("the value is used by") != std::string::npos);
}

const std::string store3 = "st.global.b32 [%out], %r3;";

}  // namespace

TEST_CASE("an undefined value that is dropped is no finding")
{
    expect_clean("");
    expect_clean("mov.b32 %r3, %r1; add.s32 %r3, %r3, 1; mov.b32 %r3, 7;" + store3);
    expect_clean("setp.eq.u32 %p2, %lane, 99; selp.b32 %r3, %r1, %r2, %p2;" + store3);
    expect_clean("@%p1 mov.b32 %r1, 1; @!%p1 mov.b32 %r1, 2; st.global.b32 [%out], %r1;");
    expect_clean("mov.b32 %r3, %r1; @%p1 st.global.b32 [%out], %r2;");
    expect_clean("mov.b64 %d1, {%r1, %r2}; mov.b64 %d1, 0; st.global.b64 [%out], %d1;");
    expect_clean("add.s32 %r1, %r1, 1; mov.b32 %r1, 4; st.global.b32 [%out], %r1;");
    // Compilers compute both sides of && and ||.
    expect_clean(
        "setp.eq.u32 %p2, %r1, 0; setp.eq.u32 %p3, %lane, 99; and.pred %p4, %p3, %p2;"
        "@%p4 st.global.b32 [%out], %r2;");
    expect_clean(
        "setp.eq.u32 %p2, %r1, 0; setp.ne.u32 %p3, %lane, 99; or.pred %p4, %p2, %p3;"
        "@%p4 st.global.b32 [%out], %r2;");
    expect_clean(
        "setp.eq.u32 %p2, %r1, 0; setp.ne.u32 %p3, %lane, 99; and.pred %p4, !%p3, %p2;"
        "@%p4 st.global.b32 [%out], %r2;");
    expect_clean("and.b32 %r3, %r1, 0;" + store3);
    expect_clean("or.b32 %r3, %r1, -1;" + store3);
}

namespace {

/// Each lane has its words of `s` and `t`, which nobody has written, at %r4 and %r4 + 128.
const std::string unwritten = ".shared .b32 s[64]; mov.b32 %r4, s; mad.lo.u32 %r4, %lane, 4, %r4;";

void expect_unwritten_used(const std::string& body)
{
    CAPTURE(body);
    const LaneResult result = run_with_undefined(unwritten + body);
    INFO(result.launch.message, result.report);
    REQUIRE(result.findings.size() == 1);
    CHECK(result.findings[0].kind == FindingKind::uninitialized_shared);
    CHECK(result.findings[0].lanes == all_lanes);
}

}  // namespace

TEST_CASE("some bits of a word that has no value are written, the others are put back")
{
    // Two elements of 4 bits, the second after the first.
    expect_clean(unwritten +
                 "ld.shared.u8 %r3, [%r4]; and.b32 %r3, %r3, 0xF0; or.b32 %r3, %r3, %lane; st.shared.u8 [%r4], %r3;"
                 "ld.shared.u8 %r3, [%r4]; and.b32 %r3, %r3, 15; or.b32 %r3, %r3, 0x70; st.shared.u8 [%r4], %r3;"
                 "ld.shared.u8 %r3, [%r4];" +
                 store3);
    expect_clean(unwritten +
                 "ld.shared.v2.u8 {%r1, %r3}, [%r4+64]; and.b32 %r1, %r1, 0xF0; and.b32 %r3, %r3, 0xF0;"
                 "or.b32 %r3, %r2, %r3; st.shared.v2.u8 [%r4+64], {%r1, %r3};");
    // A bit-field.
    expect_clean(unwritten + "ld.shared.b32 %r3, [%r4]; bfi.b32 %r3, %lane, %r3, 8, 5; st.shared.b32 [%r4], %r3;");
}

TEST_CASE("what becomes of a word without a value is reported, unless it sets bits of this word")
{
    expect_unwritten_used("ld.shared.b32 %r3, [%r4]; st.shared.b32 [%r4], %r3;");
    expect_unwritten_used("ld.shared.b32 %r3, [%r4]; add.u32 %r3, %r3, 1; st.shared.b32 [%r4], %r3;");
    expect_unwritten_used("ld.shared.b32 %r3, [%r4]; or.b32 %r3, %r3, 1; st.shared.b32 [%r4], %r3;");
    expect_unwritten_used("ld.shared.b32 %r3, [%r4]; and.b32 %r3, %r3, -1; st.shared.b32 [%r4], %r3;");
    expect_unwritten_used("ld.shared.b32 %r3, [%r4]; and.b32 %r3, %r3, 240; st.shared.b32 [%r4+128], %r3;");
    expect_unwritten_used("ld.shared.b32 %r3, [%r4]; and.b32 %r3, %r3, 240;" + store3);
    expect_unwritten_used("ld.shared.b32 %r3, [%r4]; bfi.b32 %r3, %r3, %r2, 8, 5; st.shared.b32 [%r4], %r3;");
    expect_unwritten_used("ld.shared.b32 %r3, [%r4]; bfi.b32 %r3, %r2, %r3, 8, 5;" + store3);
    expect_unwritten_used(
        "ld.shared.b32 %r3, [%r4]; and.b32 %r5, %r3, 240; or.b32 %r3, %r3, %r5; st.shared.b32 [%r4], %r3;");
    expect_unwritten_used("ld.shared.b32 %r3, [%r4]; and.b32 %r3, %r3, 240; setp.eq.u32 %p2, %r3, 0; @%p2 exit;");
}

TEST_CASE("an undefined value that leaves the registers is reported, with the place of its load")
{
    expect_used("st.global.b32 [%out], %r1;");
    expect_used("mov.b32 %r3, %r1; add.s32 %r3, %r3, %lane; cvt.rn.f32.s32 %f1, %r3; st.global.f32 [%out], %f1;");
    expect_used("selp.b32 %r3, %r1, %r2, %p1;" + store3, 0x0000FFFF);
    expect_used("selp.b32 %r3, %r1, %r2, !%p1;" + store3, 0xFFFF0000);
    expect_used("@%p1 mov.b32 %r1, 1; st.global.b32 [%out], %r1;", 0xFFFF0000);
    expect_used("@%p1 st.global.b32 [%out], %r1;", 0x0000FFFF);
    expect_used("mov.b64 %d1, {%r2, %r1}; st.global.b64 [%out], %d1;");
    expect_used("mov.b64 %d1, {%r2, %r1}; mov.b64 {%r3, %r4}, %d1; st.global.b32 [%out], %r4;");
    expect_used("st.global.v2.b32 [%out], {%r2, %r1};");
    expect_used(".shared .b32 s[32]; mov.b32 %r4, s; mad.lo.u32 %r4, %lane, 4, %r4; st.shared.b32 [%r4], %r1;");
    expect_used("red.global.add.u32 [zeros], %r1;");
    expect_used("and.b32 %r3, %r1, 255;" + store3);
    expect_used("vote.sync.ballot.b32 %r3, %p1, -1; setp.eq.u32 %p2, %r1, 0; vote.sync.any.pred %p3, %p2, -1;");
}

TEST_CASE("an undefined value in an address or a condition is reported")
{
    expect_used(
        "and.b32 %r3, %r1, 0x3c; cvt.u64.u32 %d1, %r3; mov.u64 %d2, zeros; add.s64 %d2, %d2, %d1; "
        "ld.global.u32 %r4, [%d2];");
    expect_used("setp.eq.u32 %p2, %r1, 0; @%p2 bra END; st.global.b32 [%out], %r2; END:");
    expect_used("setp.eq.u32 %p2, %r1, 0; @%p2 st.global.b32 [%out], %r2;");
    expect_used("setp.eq.u32 %p2, %r1, 0; and.pred %p3, %p1, %p2; @%p3 bra END; END:", 0x0000FFFF);
    expect_used("setp.eq.u32 %p2, %r1, 0; or.pred %p3, %p1, %p2; @%p3 bra END; END:", 0xFFFF0000);
    expect_used("setp.eq.u32 %p2, %r1, 0; @%p2 mov.b32 %r2, 6; st.global.b32 [%out], %r2;");
    expect_used("setp.eq.u32 %p2, %r1, 0; selp.b32 %r3, 1, 2, %p2;" + store3);
}

TEST_CASE("shuffles move undefined values between lanes")
{
    // Lanes 16 to 31 have a defined value.
    const std::string half = "@!%p1 mov.b32 %r1, 3;";
    expect_used(half + "shfl.sync.bfly.b32 %r3, %r1, 16, 31, -1;" + store3, 0xFFFF0000);
    expect_used(half + "shfl.sync.up.b32 %r1, %r1, 8, 0, -1; st.global.b32 [%out], %r1;", 0x00FFFFFF);
    expect_clean(half + "shfl.sync.idx.b32 %r3, %r1, 20, 31, -1;" + store3);
}

TEST_CASE("local memory keeps undefined values")
{
    expect_clean("st.local.b32 [l+8], %r1;");
    expect_clean("st.local.b32 [l+4], %r1; st.local.b32 [l+4], 3; ld.local.b32 %r3, [l+4];" + store3);
    const LaneResult copied = run_with_undefined("st.local.b32 [l+4], %r1; ld.local.b32 %r3, [l+4];" + store3);
    INFO(copied.report);
    REQUIRE(copied.findings.size() == 1);
    CHECK(copied.findings[0].ptx_text == "ld.local.b32 %r3, [l+4];");
}

TEST_CASE("undefined values stay in the registers of their function")
{
    const std::string function =
        ".func f() { .reg .b32 %r<4>; .local .b32 l; ld.local.b32 %r1, [l]; ret; }"
        ".func g() { .reg .b32 %r<4>; mov.b32 %r1, 1; mov.b32 %r2, %r1; st.global.b32 [sink], %r1; ret; }";
    const LaneResult result = run_lanes(lane_kernel("call.uni f, (); call.uni g, (); call.uni f, (); call.uni g, ();",
                                                    ".global .b32 sink;" + function));
    INFO(result.report);
    CHECK(result.launch.code == 0);
    CHECK(result.findings.empty());
}

}  // namespace tessera::emulator::test
