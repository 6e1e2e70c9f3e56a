#include "lane_kernel.hpp"

namespace tessera::emulator::test {

namespace {

struct Form {
    std::string type;
    unsigned bytes;
    bool is_signed;
};

const std::vector<Form> forms{{"b8", 1, false},  {"u8", 1, false},  {"s8", 1, true},   {"b16", 2, false},
                              {"u16", 2, false}, {"s16", 2, true},  {"b32", 4, false}, {"u32", 4, false},
                              {"s32", 4, true},  {"b64", 8, false}, {"u64", 8, false}, {"s64", 8, true}};

/// The contents of a register of `width` bytes after a load of `bytes` bytes.
std::uint64_t extended(const Slot& in, unsigned offset, unsigned bytes, bool is_signed)
{
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) {
        value |= std::uint64_t{in[offset + i]} << (8 * i);
    }
    if (is_signed && bytes < 8 && (value >> (8 * bytes - 1) & 1) != 0) {
        value |= ~std::uint64_t{0} << (8 * bytes);
    }
    return value;
}

}  // namespace

TEST_CASE("ld of each type into registers of each width that may hold it")
{
    for (const Form& form : forms) {
        for (const unsigned width : {2u, 4u, 8u}) {
            if (width < form.bytes) {
                continue;
            }
            const std::string reg = width == 2 ? "%h1" : width == 4 ? "%r1" : "%d1";
            const std::string body = "ld.global." + form.type + " " + reg + ", [%in+8];\n st.global.b" +
                                     std::to_string(8 * width) + " [%out], " + reg + ";";
            check_lanes(body, [&](unsigned, const Slot& in, Slot& out) {
                const std::uint64_t value = extended(in, 8, form.bytes, form.is_signed);
                std::memcpy(out.data(), &value, width);
            });
        }
    }
}

TEST_CASE("st of each type stores the low bits of registers of each width")
{
    for (const Form& form : forms) {
        for (const unsigned width : {2u, 4u, 8u}) {
            if (width < form.bytes) {
                continue;
            }
            const std::string reg = width == 2 ? "%h1" : width == 4 ? "%r1" : "%d1";
            check_lanes(
                "ld.global.b" + std::to_string(8 * width) + " " + reg + ", [%in];\n st.global." + form.type +
                    " [%out+16], " + reg + ";",
                [&](unsigned, const Slot& in, Slot& out) { std::memcpy(out.data() + 16, in.data(), form.bytes); });
        }
    }
}

TEST_CASE("registers of 8 bits, floating-point registers, constants")
{
    check_lanes(
        ".reg .b8 %b<3>; ld.global.b8 %b1, [%in+3]; st.global.b8 [%out], %b1; ld.global.v2.b8 {%b1,%b2}, [%in+4];"
        "st.global.v2.b8 [%out+2], {%b2,%b1};",
        [](unsigned, const Slot& in, Slot& out) {
            out[0] = in[3];
            out[2] = in[5];
            out[3] = in[4];
        });
    check_lanes(
        "ld.global.f32 %f1, [%in]; ld.global.f64 %e1, [%in+8]; ld.global.b32 %f2, [%in+4];"
        "st.global.f32 [%out], %f1; st.global.f64 [%out+8], %e1; st.global.b32 [%out+4], %f2;",
        [](unsigned, const Slot& in, Slot& out) { std::memcpy(out.data(), in.data(), 16); });
    check_lanes(
        "st.global.f32 [%out], 0f3FC00000; st.global.u8 [%out+4], 5; st.global.s16 [%out+6], -2; st.global.b64 "
        "[%out+8], -1;"
        "st.global.v4.f32 [%out+16], {0f3F800000, 0f40000000, 0f40400000, 0f40800000}; st.global.f64 [%out+32], "
        "0d3FF8000000000000;",
        [](unsigned, const Slot&, Slot& out) {
            put(out, 1.5F);
            put(out, std::uint8_t{5}, 4);
            put(out, std::int16_t{-2}, 6);
            put(out, std::int64_t{-1}, 8);
            for (unsigned i = 0; i < 4; ++i) {
                put(out, static_cast<float>(i + 1), 16 + 4 * i);
            }
            put(out, 1.5, 32);
        });
    check_lanes("ld.global.u8 %h1, [%in]; st.global.v2.u8 [%out], {%h1, 7};", [](unsigned, const Slot& in, Slot& out) {
        out[0] = in[0];
        out[1] = 7;
    });
}

TEST_CASE("vectors, with sinks and constants among the elements")
{
    check_lanes("ld.global.v2.u16 {%h1,%h2}, [%in+4]; st.global.v2.u16 [%out+8], {%h2,%h1};",
                [](unsigned, const Slot& in, Slot& out) {
                    put(out, get<std::uint16_t>(in, 6), 8);
                    put(out, get<std::uint16_t>(in, 4), 10);
                });
    check_lanes("ld.global.v4.s8 {%r1,%r2,%r3,%r4}, [%in+4]; st.global.v4.s32 [%out], {%r1,%r2,%r3,%r4};",
                [](unsigned, const Slot& in, Slot& out) {
                    for (unsigned i = 0; i < 4; ++i) {
                        put(out, std::int32_t{get<std::int8_t>(in, 4 + i)}, 4 * i);
                    }
                });
    check_lanes("ld.global.v4.b32 {%r1,_,%r3,%r4}, [%in+16]; st.global.v4.b32 [%out+32], {%r4,%r3,99,%r1};",
                [](unsigned, const Slot& in, Slot& out) {
                    put(out, get<std::uint32_t>(in, 28), 32);
                    put(out, get<std::uint32_t>(in, 24), 36);
                    put(out, std::uint32_t{99}, 40);
                    put(out, get<std::uint32_t>(in, 16), 44);
                });
    check_lanes("ld.global.v2.f64 {%e1,%e2}, [%in]; st.global.v2.b64 [%out], {%e2,%e1};",
                [](unsigned, const Slot& in, Slot& out) {
                    put(out, get<double>(in, 8));
                    put(out, get<double>(in, 0), 8);
                });
    check_lanes(
        "ld.global.v8.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, [%in+32]; st.global.v8.f32 [%out], "
        "{%f8,%f7,%f6,%f5,%f4,%f3,%f2,%f1};",
        [](unsigned, const Slot& in, Slot& out) {
            for (unsigned i = 0; i < 8; ++i) {
                put(out, get<std::uint32_t>(in, 32 + 4 * (7 - i)), 4 * i);
            }
        });
    check_lanes("ld.global.v4.b64 {%d1,%d2,%d3,%d4}, [%in]; st.v4.b64 [%out+32], {%d1,%d2,%d3,%d4};",
                [](unsigned, const Slot& in, Slot& out) { std::memcpy(out.data() + 32, in.data(), 32); });
    check_lanes("ld.global.b128 %q1, [%in+16]; st.global.b128 [%out], %q1;",
                [](unsigned, const Slot& in, Slot& out) { std::memcpy(out.data(), in.data() + 16, 16); });
    check_lanes("ld.relaxed.gpu.global.b128 %q1, [%in+16]; st.release.sys.b128 [%out], %q1;",
                [](unsigned, const Slot& in, Slot& out) { std::memcpy(out.data(), in.data() + 16, 16); });
}

TEST_CASE("the destination may be the register of the address")
{
    check_lanes("mov.b64 %d1, %in; ld.global.v2.b64 {%d1,%d2}, [%d1]; st.global.v2.b64 [%out], {%d1,%d2};",
                [](unsigned, const Slot& in, Slot& out) { std::memcpy(out.data(), in.data(), 16); });
}

TEST_CASE("memory order, cache hints and policies do not change values")
{
    for (const std::string load :
         {"ld.weak.global.b32 %r1, [%in]", "ld.volatile.global.b32 %r1, [%in]", "ld.relaxed.gpu.global.b32 %r1, [%in]",
          "ld.acquire.cta.b32 %r1, [%in]", "ld.mmio.relaxed.sys.global.b32 %r1, [%in]", "ld.global.nc.b32 %r1, [%in]",
          "ld.global.nc.L1::no_allocate.L2::128B.b32 %r1, [%in]", "ld.global.ca.b32 %r1, [%in]",
          "ld.global.cg.b32 %r1, [%in]", "ld.global.cs.b32 %r1, [%in]", "ld.global.lu.b32 %r1, [%in]",
          "ld.global.cv.b32 %r1, [%in]", "ldu.global.b32 %r1, [%in]",
          "createpolicy.fractional.L2::evict_last.b64 %d9, 0.5; ld.global.L1::evict_last.L2::cache_hint.L2::256B.b32 "
          "%r1, [%in], %d9"}) {
        for (const std::string store :
             {"st.global.b32 [%out], %r1", "st.weak.b32 [%out], %r1", "st.volatile.global.b32 [%out], %r1",
              "st.relaxed.cluster.global.b32 [%out], %r1", "st.release.gpu.b32 [%out], %r1",
              "st.mmio.relaxed.sys.global.b32 [%out], %r1", "st.global.wt.b32 [%out], %r1",
              "st.global.wb.b32 [%out], %r1",
              "mov.b64 %d9, 0; st.global.L1::no_allocate.L2::cache_hint.b32 [%out], %r1, %d9"}) {
            check_lanes(load + ";\n" + store + ";",
                        [](unsigned, const Slot& in, Slot& out) { put(out, get<std::uint32_t>(in)); });
        }
    }
}

TEST_CASE("only the lanes whose guard is true load and store")
{
    check_lanes(
        "and.b32 %r9, %lane, 5; setp.eq.u32 %p1, %r9, 1; mov.b32 %r1, 77; @%p1 ld.global.b32 %r1, [%in]; st.global.b32 "
        "[%out], %r1;"
        "@!%p1 st.global.b32 [%out+4], %lane;",
        [](unsigned lane, const Slot& in, Slot& out) {
            const bool p = (lane & 5) == 1;
            put(out, p ? get<std::uint32_t>(in) : 77);
            if (!p) {
                put(out, lane, 4);
            }
        });
}

TEST_CASE("contiguous, broadcast, strided and permuted addresses")
{
    check_lanes(
        "mul.wide.u32 %d1, %lane, 4; add.s64 %d1, %all, %d1; ld.global.b32 %r1, [%d1]; st.global.b32 [%out], %r1;"
        "ld.global.b32 %r2, [%all+20]; st.global.b32 [%out+4], %r2;"
        "xor.b32 %r3, %lane, 21; mul.wide.u32 %d1, %r3, 64; add.s64 %d1, %all, %d1; ld.global.b32 %r3, [%d1+8]; "
        "st.global.b32 [%out+8], %r3;"
        "sub.s64 %d2, %d1, 4; ld.global.b32 %r4, [%d2+12]; st.global.b32 [%out+12], %r4;"
        "add.s64 %d2, %d1, 64; ld.global.b32 %r4, [%d2+-56]; st.global.b32 [%out+16], %r4;",
        [](unsigned lane, const Slot&, Slot& out) {
            const std::vector<Slot> input = lane_input();
            const auto* bytes = reinterpret_cast<const std::uint8_t*>(input.data());
            std::memcpy(out.data(), bytes + 4 * lane, 4);
            std::memcpy(out.data() + 4, bytes + 20, 4);
            for (const unsigned at : {8u, 12u, 16u}) {
                put(out, get<std::uint32_t>(input[lane ^ 21], 8), at);
            }
        });
}

TEST_CASE("shared memory: static and dynamic addressing, every width, generic addresses")
{
    const std::string through = R"(
        .shared .align 16 .b8 other[48]; .shared .align 16 .b8 buffer[2048];
        mov.b32 %r1, buffer; mad.lo.u32 %r1, %lane, 64, %r1;
        ld.global.v4.b32 {%r2,%r3,%r4,%r5}, [%in]; st.shared.v4.b32 [%r1], {%r2,%r3,%r4,%r5};
        ld.global.b64 %d1, [%in+16]; st.shared.b64 [%r1+16], %d1;
        ld.global.b16 %h1, [%in+24]; st.shared::cta.b16 [%r1+24], %h1;
        ld.global.b8 %h1, [%in+26]; st.volatile.shared.b8 [%r1+26], %h1;
        ld.global.b8 %h1, [%in+27]; st.shared::cluster.b8 [%r1+27], %h1;
        ld.global.b128 %q1, [%in+32]; st.relaxed.cta.shared.b128 [%r1+32], %q1;
        bar.warp.sync 0xffffffff;
        mov.b64 %d2, buffer; cvta.shared.u64 %d3, %d2; mul.wide.u32 %d4, %lane, 64; add.s64 %d3, %d3, %d4;
        ld.shared.v2.b64 {%d5,%d6}, [%r1]; st.global.v2.b64 [%out], {%d5,%d6};
        ld.b64 %d5, [%d3+16]; st.global.b64 [%out+16], %d5;
        ld.shared.u32 %r6, [%r1+24]; st.global.b32 [%out+24], %r6;
        ld.acquire.cta.shared.b128 %q2, [%r1+32]; st.global.b128 [%out+32], %q2;
        st.b32 [%d3+60], %lane; ld.shared.b32 %r7, [%r1+60]; st.global.b32 [%out+60], %r7;
        st.shared.b32 [other+4], 17; ld.shared.b32 %r8, [other+4]; st.global.b32 [%out+56], %r8;)";
    check_lanes(through, [](unsigned lane, const Slot& in, Slot& out) {
        std::memcpy(out.data(), in.data(), 28);
        std::memcpy(out.data() + 32, in.data() + 32, 16);
        put(out, 17u, 56);
        put(out, lane, 60);
    });
}

TEST_CASE("each lane has its own local memory")
{
    check_lanes(R"(
        .local .align 16 .b8 first[32]; .local .align 16 .b8 second[32];
        ld.global.v4.b32 {%r1,%r2,%r3,%r4}, [%in]; st.local.v4.b32 [first+16], {%r1,%r2,%r3,%r4};
        st.local.b32 [second], %lane;
        mov.b64 %d1, second; cvta.local.u64 %d2, %d1; st.b32 [%d2+4], 5;
        ld.local.b64 %d3, [second]; st.global.b64 [%out+16], %d3;
        mov.b64 %d4, first; mul.wide.u32 %d5, %lane, 0; add.s64 %d4, %d4, %d5; ld.local.v2.b64 {%d6,%d7}, [%d4+16];
        st.global.v2.b64 [%out], {%d6,%d7};)",
                [](unsigned lane, const Slot& in, Slot& out) {
                    std::memcpy(out.data(), in.data(), 16);
                    put(out, lane, 16);
                    put(out, 5u, 20);
                });
}

TEST_CASE("global and constant variables of the module")
{
    check_lanes(
        R"(
        ld.const.b32 %r1, [table+8]; st.global.b32 [%out], %r1;
        mul.wide.u32 %d1, %lane, 4; and.b64 %d1, %d1, 12; mov.b64 %d2, table; add.s64 %d2, %d2, %d1;
        ld.const.v2.u16 {%h1,%h2}, [%d2];
        st.global.v2.b16 [%out+4], {%h1,%h2};
        cvta.const.u64 %d3, %d2; ld.b32 %r2, [%d3]; st.global.b32 [%out+8], %r2;
        ld.global.b32 %r3, [counter+4]; st.global.b32 [%out+12], %r3;
        mov.b64 %d4, counter; ld.global.b32 %r4, [%d4]; st.global.b32 [%out+16], %r4;)",
        [](unsigned lane, const Slot&, Slot& out) {
            const std::uint32_t table[] = {11, 22, 33, 44};
            put(out, 33u);
            put(out, table[lane % 4], 4);
            put(out, table[lane % 4], 8);
            put(out, 6u, 12);
            put(out, 0u, 16);
        },
        ".const .align 8 .u32 table[4] = {11, 22, 33, 44}; .global .u32 counter[2] = {0, 6};");
}

TEST_CASE("kernel parameters: by name, through a register, as a generic address")
{
    PtxRun run(module_text("sm_100a", R"(
.visible .entry k(.param .u64 out, .param .align 16 .b8 block[64], .param .u16 small, .param .f32 scale)
{
    .reg .b64 %d<8>; .reg .b32 %r<8>; .reg .b16 %h<3>; .reg .f32 %f<3>; .reg .pred %p;
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    ld.param.v4.b32 {%r2,%r3,%r4,%r5}, [block+16]; st.global.v4.b32 [%d1], {%r2,%r3,%r4,%r5};
    mov.b64 %d2, block; ld.param.b32 %r2, [%d2+4]; st.global.b32 [%d1+16], %r2;
    cvta.param.u64 %d3, %d2; mul.wide.u32 %d4, %r1, 8; and.b64 %d4, %d4, 56; add.s64 %d5, %d3, %d4; ld.b64 %d6, [%d5];
    mul.wide.u32 %d4, %r1, 8; add.s64 %d7, %d1, %d4; st.global.b64 [%d7+64], %d6;
    isspacep.param %p, %d3; selp.b32 %r6, 1, 0, %p; st.global.b32 [%d1+20], %r6;
    ld.param.u16 %h1, [small]; st.global.b16 [%d1+24], %h1; ld.param.u16 %r7, [small]; st.global.b32 [%d1+28], %r7;
    ld.param::entry.f32 %f1, [scale]; st.global.f32 [%d1+32], %f1;
    cvta.to.param.u64 %d6, %d5; ld.param.b64 %d6, [%d6]; st.global.b64 [%d7+320], %d6;
    ret;
})"));
    std::array<std::uint64_t, 8> block{};
    for (unsigned i = 0; i < 8; ++i) {
        block[i] = 0x0101010101010101u * i + 0xABCD;
    }
    const std::uint64_t out = run.buffer(std::vector<std::uint8_t>(1024));
    const LaunchResult result = run.launch("k", {}, out, block, std::uint16_t{0xFFFE}, 2.5F);
    INFO(result.message, run.report.text(), run.module().find_kernel("k")->load_error);
    REQUIRE(result.code == 0);
    CHECK(run.report.findings().empty());
    const auto words = run.read<std::uint64_t>(out, 128);
    CHECK(words[0] == block[2]);
    CHECK(words[1] == block[3]);
    CHECK(words[2] == ((block[0] >> 32) | std::uint64_t{1} << 32));
    CHECK(words[3] == (0xFFFEu | std::uint64_t{0xFFFE} << 32));
    CHECK(run.read<float>(out + 32, 1)[0] == 2.5F);
    for (unsigned lane = 0; lane < 32; ++lane) {
        CHECK(words[8 + lane] == block[lane % 8]);
        CHECK(words[40 + lane] == block[lane % 8]);
    }
}

TEST_CASE("each lane has its own parameters of functions")
{
    check_lanes(
        R"(
        { .param .b32 a; .param .align 8 .b8 s[16]; .param .b64 r;
          st.param.b32 [a], %lane; ld.global.v2.b32 {%r1,%r2}, [%in]; st.param.v2.b32 [s], {%r1,%r2};
          st.param.b64 [s+8], 40;
          call.uni (r), combine, (a, s); ld.param.b64 %d1, [r]; }
        st.global.b64 [%out], %d1;)",
        [](unsigned lane, const Slot& in, Slot& out) {
            put(out, std::uint64_t{lane} + get<std::uint32_t>(in) + get<std::uint32_t>(in, 4) + 40);
        },
        R"(
.func (.param .b64 result) combine(.param .b32 a, .param .align 8 .b8 s[16])
{
    .reg .b64 %d<8>;
    ld.param.u32 %d1, [a]; ld.param.u32 %d2, [s]; ld.param.u32 %d3, [s+4]; ld.param::func.b64 %d4, [s+8];
    add.s64 %d1, %d1, %d2; add.s64 %d3, %d3, %d4; add.s64 %d1, %d1, %d3; st.param.b64 [result], %d1;
    ret;
})");
}

TEST_CASE("the counters of a launch have the bytes of ld and st")
{
    const LaneResult result = run_lanes(lane_kernel(R"(
        .shared .align 16 .b8 s[2048]; mov.b32 %r1, s; mad.lo.u32 %r1, %lane, 64, %r1;
        ld.global.v4.b32 {%r2,%r3,%r4,%r5}, [%in]; st.shared.b64 [%r1], %in; ld.shared.b32 %r6, [%r1];
        st.global.b32 [%out], %r6;)"));
    REQUIRE(result.launch.code == 0);
    CHECK(result.launch.statistics.global_read_bytes == 32 * 16);
    CHECK(result.launch.statistics.global_write_bytes == 32 * 4);
    CHECK(result.launch.statistics.shared_write_bytes == 32 * 8);
    CHECK(result.launch.statistics.shared_read_bytes == 32 * 4);
}

TEST_CASE("invalid forms are refused")
{
    for (const std::string body : {"ld.global.f16 %h1, [%in];",
                                   "ld.shared.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%r9];",
                                   "ld.volatile.local.b32 %r1, [%d1];",
                                   "ld.acquire.global.b32 %r1, [%in];",
                                   "ld.gpu.global.b32 %r1, [%in];",
                                   "ld.release.gpu.global.b32 %r1, [%in];",
                                   "st.acquire.gpu.global.b32 [%in], %r1;",
                                   "st.const.b32 [%in], %r1;",
                                   "st.param.b32 [in], %r1;",
                                   "ld.global.u64 %r1, [%in];",
                                   "ld.global.b32 %r1, [in];",
                                   "ld.global.v2.b32 %r1, [%in];",
                                   "ld.global.v2.b32 {%r1,%r2,%r3}, [%in];",
                                   "ld.global.b32.foo %r1, [%in];",
                                   "ld.global.b32 %r1, [%in], %d1;",
                                   "ld.global.v2.b128 {%q1,%q2}, [%in];",
                                   "ld.global.v8.b16 {%h1,%h2,%h3,%h4,%h5,%h6,%h7,%h8}, [%in];",
                                   "ld.mmio.global.b32 %r1, [%in];",
                                   "st.global.nc.b32 [%in], %r1;",
                                   "ld.global.wt.b32 %r1, [%in];",
                                   "ld.volatile.global.nc.b32 %r1, [%in];",
                                   "ld.shared.nc.b32 %r1, [%r2];",
                                   "ld.local.b32 %r1, [in];",
                                   "ld.global.b32 %r1, [missing];"}) {
        CAPTURE(body);
        CHECK_FALSE(load_error(body).empty());
    }
    CHECK(load_error("ld.global.v8.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, [%in];", "", "h200", "sm_90a").find("10.0") !=
          std::string::npos);
    CHECK(load_error("multimem.ld_reduce.relaxed.gpu.global.add.f32 %f1, [%in];").find("multicast") !=
          std::string::npos);
    CHECK(load_error("tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%in, {%r1}];").find("texture") != std::string::npos);
}

}  // namespace tessera::emulator::test
