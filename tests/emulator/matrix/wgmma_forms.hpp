#pragma once

// The instructions of a warpgroup: wgmma, dense and sparse.

#include "instruction_text.hpp"

namespace tessera::probe {

// ---- wgmma ----

struct WgmmaCase {
    unsigned n;
    const char *d, *a, *b;
    bool a_registers = false;
    unsigned swizzle = 0;  ///< bytes: 0, 32, 64, 128
    bool a_mn = false, b_mn = false;
    int scale_a = 1, scale_b = 1;
    const char* suffix = "";
    int selector = -1;
    bool accumulate = true;
};

/// A descriptor without its start address for a dense tile of `rows` x `line` bytes (K-major) or `line` bytes x k
/// (MN-major).
inline std::uint64_t wgmma_descriptor_fields(unsigned swizzle, bool mn_major, unsigned rows, unsigned k_elements)
{
    std::uint64_t leading = 0, stride = 0;
    if (swizzle == 0) {
        // K-major: 16-byte columns of `rows` rows. MN-major: 8 k x 16 bytes; first all chunks along MN, then along K.
        leading = mn_major ? rows * 2 / 16 * 128 : rows * 16;
        stride = 128;
    } else {
        // MN-major: blocks of swizzle bytes along MN, each with all k.
        stride = 8 * swizzle;
        leading = mn_major ? k_elements * swizzle : 16;
    }
    const std::uint64_t code = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    return (leading >> 4) << 16 | (stride >> 4) << 32 | code << 62;
}

inline InstructionForm wgmma_form(const WgmmaCase& c)
{
    const ElementType &a = element_type(c.a), &b = element_type(c.b);
    const bool sparse = c.selector >= 0;
    const unsigned stored = 256 / a.bits, k = sparse ? 2 * stored : stored;
    constexpr unsigned region = 32768;  // bytes for each of A and B
    KernelText text(128);
    const unsigned at_a = text.input(region / 4, a.content), at_b = text.input(region / 4, b.content);
    // Copy both to shared memory, 1024-byte aligned.
    text.body += "mov.u32 %s, smem;\nadd.u32 %s, %s, 1023;\nand.b32 %s, %s, -1024;\n";
    const unsigned loop = 2 * region / (128 * 16);
    text.body += "shl.b32 %x, %me, 4;\nadd.u32 %y, %s, %x;\ncvt.u64.u32 %t, %x;\nadd.u64 %t, %in, %t;\nmov.u32 %z, " +
                 number(loop) + ";\nLOOP:\n";
    const unsigned temporary = text.fresh(4);
    text.body += "ld.global.v4.b32 " + registers("%r", temporary, 4) + ", [%t+" + number(at_a) +
                 "];\nst.shared.v4.b32 [%y], " + registers("%r", temporary, 4) +
                 ";\nadd.u64 %t, %t, 2048;\nadd.u32 %y, %y, 2048;\nsub.u32 %z, %z, 1;\n"
                 "setp.ne.u32 %p, %z, 0;\n@%p bra LOOP;\nfence.proxy.async;\nbar.sync 0;\n";
    static_cast<void>(at_b);
    const unsigned sums = std::string_view(c.d) == "f16" ? c.n / 4 : c.n / 2;
    const unsigned ra = c.a_registers ? text.load(4, a.content) : 0;
    const unsigned rd = text.load(sums, sum_content(c.d));
    const unsigned re = sparse ? text.load(1, a.bits == 32 ? Content::metadata_tf32 : Content::metadata) : 0;
    const auto descriptor = [&](const char* to, unsigned offset, std::uint64_t fields) {
        text.body += "add.u32 %x, %s, " + number(offset) +
                     ";\nshr.u32 %x, %x, 4;\nand.b32 %x, %x, 16383;\ncvt.u64.u32 " + std::string(to) +
                     ", %x;\nor.b64 " + to + ", " + to + ", " + number(fields) + ";\n";
    };
    // The instruction's K is 32 bytes; wider swizzles use the first 32 bytes of each line.
    descriptor("%a", 0, wgmma_descriptor_fields(c.swizzle, c.a_mn, 64, k));
    descriptor("%b", region, wgmma_descriptor_fields(c.swizzle, c.b_mn, c.n, k));
    const bool floating = std::string_view(c.d) != "s32";
    std::string name = std::string("wgmma.mma_async") + (sparse ? ".sp" : "") + ".sync.aligned.m64n" + number(c.n) +
                       "k" + number(k) + "." + c.d + "." + c.a + "." + c.b + c.suffix;
    text.body += "setp.eq.u32 %p, 0, " + std::string(c.accumulate ? "0" : "1") + ";\nwgmma.fence.sync.aligned;\n" +
                 name + " " + registers("%r", rd, sums) + ", " +
                 (c.a_registers ? registers("%r", ra, 4) : std::string("%a")) + ", %b, ";
    if (sparse) {
        text.body += "%r" + number(re) + ", " + number(static_cast<unsigned>(c.selector)) + ", ";
        name += " selector " + number(static_cast<unsigned>(c.selector));
    }
    text.body += "%p";
    if (floating) {
        text.body += ", " + std::to_string(c.scale_a) + ", " + std::to_string(c.scale_b);
    }
    if (a.bits == 16) {
        text.body += (c.a_registers ? "" : c.a_mn ? ", 1" : ", 0") + std::string(c.b_mn ? ", 1" : ", 0");
    }
    text.body += ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
    text.store(rd, sums);
    name += c.a_registers ? " rs" : " ss";
    name += " swizzle " + number(c.swizzle) + (c.a_mn ? " a mn" : "") + (c.b_mn ? " b mn" : "");
    name += std::string(c.scale_a < 0 ? " -a" : "") + (c.scale_b < 0 ? " -b" : "") + (c.accumulate ? "" : " new");
    return text.finish(name, 2 * region + 1024);
}

inline void add_wgmma_forms(std::vector<InstructionForm>& forms)
{
    const auto add = [&](const WgmmaCase& c) { forms.push_back(wgmma_form(c)); };
    struct Types {
        const char *d, *a, *b;
        const char* suffix = "";
    };
    static constexpr std::array<Types, 15> types{{{"f32", "f16", "f16"},
                                                  {"f16", "f16", "f16"},
                                                  {"f32", "bf16", "bf16"},
                                                  {"f32", "tf32", "tf32"},
                                                  {"f32", "e4m3", "e4m3"},
                                                  {"f32", "e4m3", "e5m2"},
                                                  {"f16", "e5m2", "e4m3"},
                                                  {"f32", "e5m2", "e5m2"},
                                                  {"s32", "s8", "s8"},
                                                  {"s32", "s8", "u8"},
                                                  {"s32", "u8", "s8"},
                                                  {"s32", "u8", "u8"},
                                                  {"s32", "s8", "s8", ".satfinite"},
                                                  {"s32", "u8", "u8", ".satfinite"},
                                                  {"s32", "b1", "b1", ".and.popc"}}};
    for (const Types& t : types) {
        for (const unsigned swizzle : {0U, 32U, 64U, 128U}) {
            add({.n = 16, .d = t.d, .a = t.a, .b = t.b, .swizzle = swizzle, .suffix = t.suffix});
        }
        add({.n = 8, .d = t.d, .a = t.a, .b = t.b, .a_registers = true, .suffix = t.suffix});
        add({.n = 256, .d = t.d, .a = t.a, .b = t.b, .swizzle = 128, .suffix = t.suffix, .accumulate = false});
    }
    for (const char* a : {"f16", "bf16"}) {
        for (const unsigned swizzle : {0U, 32U, 64U, 128U}) {
            for (const unsigned major : {1U, 2U, 3U}) {
                // MN-major tiles are whole blocks of the swizzle's width: 64 elements fit all.
                add({.n = 128,
                     .d = "f32",
                     .a = a,
                     .b = a,
                     .swizzle = swizzle,
                     .a_mn = (major & 1) != 0,
                     .b_mn = (major & 2) != 0});
            }
        }
        add({.n = 64, .d = "f32", .a = a, .b = a, .a_registers = true, .swizzle = 128, .b_mn = true});
        add({.n = 40, .d = "f32", .a = a, .b = a, .scale_a = -1});
        add({.n = 104, .d = "f32", .a = a, .b = a, .a_registers = true, .scale_a = -1});
        add({.n = 24, .d = "f32", .a = a, .b = a, .scale_b = -1});
        add({.n = 24, .d = "f32", .a = a, .b = a, .scale_a = -1, .scale_b = -1});
    }
    for (const bool from_registers : {false, true}) {
        for (const int selector : {0, 1}) {
            add({.n = 16,
                 .d = "f32",
                 .a = "f16",
                 .b = "f16",
                 .a_registers = from_registers,
                 .swizzle = 64,
                 .selector = selector});
            add({.n = 16,
                 .d = "f32",
                 .a = "tf32",
                 .b = "tf32",
                 .a_registers = from_registers,
                 .swizzle = 64,
                 .selector = selector});
        }
        add({.n = 16,
             .d = "f16",
             .a = "f16",
             .b = "f16",
             .a_registers = from_registers,
             .swizzle = 128,
             .selector = 0});
        add({.n = 32,
             .d = "f32",
             .a = "e4m3",
             .b = "e5m2",
             .a_registers = from_registers,
             .swizzle = 128,
             .selector = 0});
        add({.n = 32, .d = "s32", .a = "s8", .b = "u8", .a_registers = from_registers, .swizzle = 128, .selector = 0});
    }
    add({.n = 64, .d = "f32", .a = "bf16", .b = "bf16", .swizzle = 128, .a_mn = true, .b_mn = true, .selector = 0});
}

}  // namespace tessera::probe
