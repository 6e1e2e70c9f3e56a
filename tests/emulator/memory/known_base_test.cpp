// Loads and stores at several offsets from one register: only the first finds out how the lanes' addresses lie.

#include "lane_kernel.hpp"

namespace tessera::emulator::test {

namespace {

/// Word i of `words` is i + 1000; %r1 is its address, %r2 4 * lane, %r3 that of the lane's word.
constexpr std::string_view fill_words = R"(
    .shared .align 128 .b32 words[512];
    mov.b32 %r1, words; shl.b32 %r2, %lane, 2; add.u32 %r3, %r1, %r2; add.u32 %r4, %lane, 1000; mov.b32 %r5, 0;
    $fill:
    st.shared.b32 [%r3], %r4; add.u32 %r4, %r4, 32; add.u32 %r3, %r3, 128; add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 16; @%p1 bra $fill;
    bar.warp.sync 0xFFFFFFFF; add.u32 %r3, %r1, %r2;
)";

void check_words(std::string_view body, const std::function<void(std::uint32_t lane, Slot& out)>& expected)
{
    check_lanes(std::string(fill_words) + std::string(body),
                [&](unsigned lane, const Slot&, Slot& out) { expected(lane, out); });
}

}  // namespace

TEST_CASE("loads at several offsets from one register, of each shape")
{
    check_words(
        R"(
        ld.shared.b32 %r10, [%r3]; ld.shared.b32 %r11, [%r3+128]; ld.shared.v2.b32 {%r12, %r13}, [%r1+8];
        ld.shared.b32 %r14, [%r1+132]; shl.b32 %r6, %lane, 4; add.u32 %r6, %r6, %r1;
        ld.shared.v4.b32 {%r15, %r16, %r17, %r18}, [%r6+16]; ld.shared.b32 %r19, [%r6+1036];
        xor.b32 %r7, %r2, 4; add.u32 %r7, %r7, %r1; ld.shared.b32 %r20, [%r7]; ld.shared.b32 %r21, [%r7+256];
        st.global.b32 [%out], %r10; st.global.b32 [%out+4], %r11; st.global.v2.b32 [%out+8], {%r12, %r13};
        st.global.b32 [%out+16], %r14; st.global.b32 [%out+20], %r15; st.global.b32 [%out+24], %r18;
        st.global.b32 [%out+28], %r19; st.global.b32 [%out+32], %r20; st.global.b32 [%out+36], %r21;)",
        [](std::uint32_t lane, Slot& out) {
            put(out, 1000 + lane);
            put(out, 1032 + lane, 4);
            put(out, 1002u, 8);
            put(out, 1003u, 12);
            put(out, 1033u, 16);
            put(out, 1004 + 4 * lane, 20);
            put(out, 1007 + 4 * lane, 24);
            put(out, 1259 + 4 * lane, 28);
            put(out, 1000 + (lane ^ 1), 32);
            put(out, 1064 + (lane ^ 1), 36);
        });
}

TEST_CASE("a register of addresses that is written between two loads")
{
    check_words(
        R"(
        ld.shared.b32 %r10, [%r3]; add.u32 %r3, %r3, 64; ld.shared.b32 %r11, [%r3+4];
        setp.lt.u32 %p2, %lane, 7; ld.shared.b32 %r12, [%r3]; @%p2 mov.b32 %r3, %r1;
        ld.shared.b32 %r13, [%r3]; sub.u32 %r14, %r10, 1000; shl.b32 %r14, %r14, 3; add.u32 %r14, %r14, %r1;
        ld.shared.b32 %r14, [%r14]; sub.u32 %r14, %r14, 1000; shl.b32 %r14, %r14, 2; add.u32 %r14, %r14, %r1;
        ld.shared.b32 %r14, [%r14]; ld.shared.b32 %r15, [%r3+4];
        st.global.b32 [%out], %r10; st.global.b32 [%out+4], %r11; st.global.b32 [%out+8], %r12;
        st.global.b32 [%out+12], %r13; st.global.b32 [%out+16], %r14; st.global.b32 [%out+20], %r15;)",
        [](std::uint32_t lane, Slot& out) {
            put(out, 1000 + lane);
            put(out, 1017 + lane, 4);
            put(out, 1016 + lane, 8);
            put(out, lane < 7 ? 1000u : 1016 + lane, 12);
            put(out, 1000 + 2 * lane, 16);
            put(out, lane < 7 ? 1001u : 1017 + lane, 20);
        });
}

TEST_CASE("loads of fewer lanes than the load before, and of more")
{
    check_words(
        R"(
        mov.b32 %r10, 1; mov.b32 %r12, 2; mov.b32 %r13, 3; setp.ge.u32 %p1, %lane, 5; setp.gt.u32 %p2, %lane, 99;
        @%p1 ld.shared.b32 %r10, [%r3]; ld.shared.b32 %r11, [%r3+128]; @!%p1 ld.shared.b32 %r12, [%r3+256];
        @%p2 ld.shared.b32 %r13, [%r1]; ld.shared.b32 %r14, [%r1+4];
        st.global.b32 [%out], %r10; st.global.b32 [%out+4], %r11; st.global.b32 [%out+8], %r12;
        st.global.b32 [%out+12], %r13; st.global.b32 [%out+16], %r14;)",
        [](std::uint32_t lane, Slot& out) {
            put(out, lane >= 5 ? 1000 + lane : 1u);
            put(out, 1032 + lane, 4);
            put(out, lane >= 5 ? 2u : 1064 + lane, 8);
            put(out, 3u, 12);
            put(out, 1001u, 16);
        });
}

TEST_CASE("a loop whose register has other addresses in each iteration, after a load that no lane executes")
{
    // The first load of an iteration is executed in the first one only; then the addresses are of another shape.
    check_words(
        R"(
        mov.b32 %r8, 0; mov.b32 %r10, 0; mov.b32 %r11, 0;
        $loop:
        setp.eq.u32 %p1, %r8, 0; @!%p1 bra $skip;
        ld.shared.b32 %r12, [%r3]; add.u32 %r10, %r10, %r12;
        $skip:
        ld.shared.b32 %r13, [%r3+128]; add.u32 %r11, %r11, %r13; ld.shared.b32 %r13, [%r3+256];
        add.u32 %r11, %r11, %r13; and.b32 %r9, %lane, 3; shl.b32 %r9, %r9, 2; add.u32 %r3, %r1, %r9;
        add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 3; @%p1 bra $loop;
        st.global.b32 [%out], %r10; st.global.b32 [%out+4], %r11;)",
        [](std::uint32_t lane, Slot& out) {
            put(out, 1000 + lane);
            put(out, 2 * 1000 + 96 + 2 * lane + 2 * (2 * 1000 + 96 + 2 * (lane & 3)), 4);
        });
}

TEST_CASE("diverged lanes whose registers have other addresses, and which join")
{
    check_words(
        R"(
        setp.lt.u32 %p1, %lane, 16; @%p1 bra $low;
        add.u32 %r3, %r3, 4; ld.shared.b32 %r10, [%r3]; ld.shared.b32 %r11, [%r3+128]; bra $end;
        $low:
        ld.shared.b32 %r10, [%r3]; bar.warp.sync 0x0000FFFF; ld.shared.b32 %r11, [%r3+128];
        $end:
        ld.shared.b32 %r12, [%r3]; ld.shared.b32 %r13, [%r3+256];
        st.global.b32 [%out], %r10; st.global.b32 [%out+4], %r11; st.global.b32 [%out+8], %r12;
        st.global.b32 [%out+12], %r13;)",
        [](std::uint32_t lane, Slot& out) {
            const std::uint32_t word = 1000 + lane + (lane < 16 ? 0 : 1);
            put(out, word);
            put(out, word + 32, 4);
            put(out, word, 8);
            put(out, word + 64, 12);
        });
}

TEST_CASE("loads at several offsets from one register whose addresses are near each other, in any order")
{
    // %r6: 4 consecutive words; %r7: 8 vectors of 16 bytes, as far apart as two vectors of the CPU reach; %r8: farther.
    check_words(
        R"(
        shr.u32 %r6, %lane, 2; and.b32 %r6, %r6, 3; shl.b32 %r6, %r6, 2; add.u32 %r6, %r6, %r1;
        xor.b32 %r7, %lane, 5; and.b32 %r7, %r7, 7; shl.b32 %r7, %r7, 4; add.u32 %r7, %r7, %r1;
        and.b32 %r8, %lane, 17; shl.b32 %r8, %r8, 4; add.u32 %r8, %r8, %r1;
        ld.shared.b32 %r10, [%r6]; ld.shared.b32 %r11, [%r6+100]; ld.shared.b32 %r12, [%r6+2032];
        ld.shared.v4.b32 {%r13, %r14, %r15, %r16}, [%r7]; ld.shared.v4.b32 {%r17, %r18, %r19, %r20}, [%r7+1920];
        ld.shared.v2.b32 {%r21, %r22}, [%r7+72]; ld.shared.b64 %d1, [%r7+264];
        ld.shared.v4.b32 {%r23, %r24, %r25, %r26}, [%r8]; ld.shared.v2.b32 {%r27, %r28}, [%r8+512];
        st.global.b32 [%out], %r10; st.global.b32 [%out+4], %r11; st.global.b32 [%out+8], %r12;
        st.global.b32 [%out+12], %r13; st.global.b32 [%out+16], %r16; st.global.b32 [%out+20], %r17;
        st.global.b32 [%out+24], %r20; st.global.b32 [%out+28], %r21; st.global.b32 [%out+32], %r22;
        st.global.b64 [%out+40], %d1; st.global.b32 [%out+48], %r24; st.global.b32 [%out+52], %r28;
        ld.shared.b32 %r6, [%r6+8]; ld.shared.v2.b32 {%r29, %r7}, [%r7+8];
        st.global.b32 [%out+56], %r6; st.global.b32 [%out+60], %r7;)",
        [](std::uint32_t lane, Slot& out) {
            const std::uint32_t one = 1000 + (lane >> 2 & 3), vector = 1000 + 4 * ((lane ^ 5) & 7);
            const std::uint32_t far = 1000 + 4 * (lane & 17);
            put(out, one);
            put(out, one + 25, 4);
            put(out, one + 508, 8);
            put(out, vector, 12);
            put(out, vector + 3, 16);
            put(out, vector + 480, 20);
            put(out, vector + 483, 24);
            put(out, vector + 18, 28);
            put(out, vector + 19, 32);
            put(out, std::uint64_t{vector + 67} << 32 | (vector + 66), 40);
            put(out, far + 1, 48);
            put(out, far + 129, 52);
            put(out, one + 2, 56);
            put(out, vector + 3, 60);
        });
}

TEST_CASE("registers with sums of one register and constants")
{
    // %r6 to %r9: of %r3, in one step or in two, also below it; %r20 is near addresses, and its sum is stored to.
    check_words(
        R"(
        ld.shared.b32 %r10, [%r3]; add.u32 %r6, %r3, 128; ld.shared.b32 %r11, [%r6+128]; add.s32 %r7, 256, %r6;
        ld.shared.b32 %r12, [%r7-128]; add.s32 %r8, %r7, -384; ld.shared.b32 %r13, [%r8+4];
        add.u32 %r9, %r3, 512; ld.shared.v2.b32 {%r14, %r15}, [%r1+8]; ld.shared.b32 %r16, [%r9+512];
        and.b32 %r20, %lane, 3; shl.b32 %r20, %r20, 2; add.u32 %r20, %r20, %r1; add.u32 %r21, %r20, 64;
        ld.shared.b32 %r17, [%r21]; add.u32 %r22, %r20, 256; ld.shared.b32 %r18, [%r22+12];
        add.u32 %r23, %r3, 1024; st.shared.b32 [%r23+128], %lane; ld.shared.b32 %r19, [%r3+1152];
        st.global.b32 [%out], %r10; st.global.b32 [%out+4], %r11; st.global.b32 [%out+8], %r12;
        st.global.b32 [%out+12], %r13; st.global.b32 [%out+16], %r14; st.global.b32 [%out+20], %r16;
        st.global.b32 [%out+24], %r17; st.global.b32 [%out+28], %r18; st.global.b32 [%out+32], %r19;)",
        [](std::uint32_t lane, Slot& out) {
            put(out, 1000 + lane);
            put(out, 1064 + lane, 4);
            put(out, 1064 + lane, 8);
            put(out, 1001 + lane, 12);
            put(out, 1002u, 16);
            put(out, 1256 + lane, 20);
            put(out, 1016 + (lane & 3), 24);
            put(out, 1067 + (lane & 3), 28);
            put(out, lane, 32);
        });
}

TEST_CASE("a sum whose register is written afterwards, which has a guard, or which is not of a constant")
{
    check_words(
        R"(
        mov.b32 %r6, %r1; mov.b32 %r20, %r1; setp.lt.u32 %p2, %lane, 7;
        ld.shared.b32 %r10, [%r3]; add.u32 %r7, %r3, 128; add.u32 %r3, %r3, 4; ld.shared.b32 %r11, [%r7];
        ld.shared.b32 %r12, [%r3]; add.u32 %r8, %r3, 256; mov.b32 %r3, %r1; ld.shared.b32 %r13, [%r8];
        ld.shared.b32 %r14, [%r3+8]; @%p2 add.u32 %r6, %r3, 128; ld.shared.b32 %r15, [%r6];
        add.u32 %r9, %r3, %r2; ld.shared.b32 %r16, [%r9]; add.u32 %r9, %r3, 64; mov.b32 %r9, %r20;
        ld.shared.b32 %r17, [%r9]; add.u32 %r9, %r9, 12; ld.shared.b32 %r18, [%r9]; ld.shared.b32 %r19, [%r9+4];
        add.u32 %r21, %r20, 8; ld.shared.b32 %r20, [%r21]; ld.shared.b32 %r22, [%r21+4];
        st.global.b32 [%out], %r10; st.global.b32 [%out+4], %r11; st.global.b32 [%out+8], %r12;
        st.global.b32 [%out+12], %r13; st.global.b32 [%out+16], %r14; st.global.b32 [%out+20], %r15;
        st.global.b32 [%out+24], %r16; st.global.b32 [%out+28], %r17; st.global.b32 [%out+32], %r18;
        st.global.b32 [%out+36], %r19; st.global.b32 [%out+40], %r20; st.global.b32 [%out+44], %r22;)",
        [](std::uint32_t lane, Slot& out) {
            put(out, 1000 + lane);
            put(out, 1032 + lane, 4);
            put(out, 1001 + lane, 8);
            put(out, 1065 + lane, 12);
            put(out, 1002u, 16);
            put(out, lane < 7 ? 1032u : 1000u, 20);
            put(out, 1000 + lane, 24);
            put(out, 1000u, 28);
            put(out, 1003u, 32);
            put(out, 1004u, 36);
            put(out, 1002u, 40);
            put(out, 1003u, 44);
        });
}

TEST_CASE("64-bit addresses of shared and of global memory, and of parameters, from one register")
{
    check_words(
        R"(
        cvt.u64.u32 %d1, %r3; ld.shared.b32 %r10, [%d1]; ld.shared.b32 %r11, [%d1+128];
        mov.b64 %d2, in; ld.param.b64 %d3, [%d2]; ld.param.b64 %d4, [%d2+8]; sub.s64 %d3, %d3, %all;
        cvt.u64.u32 %d5, %lane; mul.lo.u64 %d5, %d5, 64; add.s64 %d4, %d4, %d5; sub.s64 %d4, %d4, %out;
        st.global.b32 [%out+8], %r11; st.global.b32 [%out], %r10; st.global.b64 [%out+16], %d3; ld.global.b32 %r12, [%out];
        st.global.b64 [%out+24], %d4; st.global.b32 [%out+32], %r12; ld.global.b32 %r13, [%out+8];
        st.global.b32 [%out+36], %r13;)",
        [](std::uint32_t lane, Slot& out) {
            put(out, 1000 + lane);
            put(out, 1032 + lane, 8);
            put(out, std::uint64_t{0}, 16);
            put(out, std::uint64_t{0}, 24);
            put(out, 1000 + lane, 32);
            put(out, 1032 + lane, 36);
        });
}

TEST_CASE("offsets below a register, and beyond the end of shared memory")
{
    check_words(
        R"(
        add.u32 %r6, %r3, 1024; ld.shared.b32 %r10, [%r6-1024]; ld.shared.b32 %r11, [%r6-896];
        st.global.b32 [%out], %r10; st.global.b32 [%out+4], %r11;)",
        [](std::uint32_t lane, Slot& out) {
            put(out, 1000 + lane);
            put(out, 1032 + lane, 4);
        });
    const LaneResult beyond = run_lanes(
        lane_kernel(std::string(fill_words) + "ld.shared.b32 %r10, [%r3+1920]; ld.shared.b32 %r10, [%r3+1924];"));
    CHECK(beyond.launch.code != 0);
    REQUIRE(beyond.findings.size() == 1);
    CHECK(beyond.findings.front().kind == FindingKind::out_of_bounds);
    CHECK(beyond.findings.front().lanes == 0x80000000);
}

}  // namespace tessera::emulator::test
