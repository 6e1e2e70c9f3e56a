#pragma once

// Kernels of one warpgroup, for the tests of wgmma's rules.

#include <doctest/doctest.h>

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "run_ptx.hpp"

namespace tessera::emulator::test::warpgroup {

/// A kernel of one CTA whose shared memory (64 KiB) is full of bf16 ones. `ready` makes it visible to wgmma. %a and %b
/// are descriptors of K-major tiles with 128-byte swizzle, so a wgmma adds 16 to each element of D.
inline const std::string fill =
    "mov.u32 %s, smem;\nshl.b32 %x, %me, 4;\nadd.u32 %y, %s, %x;\nmov.b32 %x, 0x3f803f80;\nmov.u32 %z, 32;\n"
    "FILL: st.shared.v4.b32 [%y], {%x,%x,%x,%x};\nadd.u32 %y, %y, 2048;\nsub.u32 %z, %z, 1;\nsetp.ne.u32 %p, %z, "
    "0;\n@%p bra FILL;\n";
inline const std::string ready = "fence.proxy.async;\nbar.sync 0;\n";
inline const std::string descriptors =
    "shr.u32 %x, %s, 4;\ncvt.u64.u32 %a, %x;\nor.b64 %a, %a, 0x4000004000010000;\nadd.u64 %b, %a, 1024;\n";
inline const std::string zero = "mov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, %f0;\n";
inline const std::string fence = "wgmma.fence.sync.aligned;\n";
inline const std::string multiply =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %a, %b, 1, 1, 1, 0, 0;\n";
inline const std::string commit = "wgmma.commit_group.sync.aligned;\n";
inline const std::string wait = "wgmma.wait_group.sync.aligned 0;\n";
inline const std::string store = "st.global.f32 [%out], %f0;\nst.global.f32 [%out+512], %f3;\n";

[[nodiscard]] inline std::string kernel(const std::string& body, unsigned threads = 128)
{
    return ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"
           ".visible .entry k(.param .u64 p_out)\n.maxntid " +
           std::to_string(threads) +
           "\n{\n.reg .b64 %a, %b, %c, %out, %t;\n.reg .b32 %s, %x, %y, %z, %w, %me, %r<20>;\n.reg .f32 %f<20>;\n.reg "
           ".b16 %h<8>;\n.reg .b64 %d<8>;\n.reg "
           ".pred %p, %q;\n"
           "ld.param.u64 %out, [p_out];\ncvta.to.global.u64 %out, %out;\nmov.u32 %me, %tid.x;\nmul.wide.u32 %t, %me, "
           "4;\n"
           "add.u64 %out, %out, %t;\n" +
           body + "ret;\n}\n";
}

struct Outcome {
    LaunchResult result;
    std::vector<float> values;
    std::unique_ptr<PtxRun> run;
    [[nodiscard]] std::uint64_t count(FindingKind kind) const { return run->count(kind); }
    [[nodiscard]] std::uint64_t total() const { return run->report.total(); }
    [[nodiscard]] std::string text() const { return run->report.text(); }
};

[[nodiscard]] inline Outcome execute(const std::string& body, unsigned threads = 128,
                                     Schedule schedule = Schedule::in_order, std::uint64_t seed = 1, bool check = true)
{
    Outcome outcome;
    outcome.run = std::make_unique<PtxRun>(kernel(body, threads), "h200");
    outcome.run->options.schedule = schedule;
    outcome.run->options.seed = seed;
    outcome.run->options.check = check;
    outcome.run->options.hang_limit = 100'000;
    const std::uint64_t out = outcome.run->buffer(std::vector<float>(1024, -1.0F));
    outcome.result = outcome.run->launch("k", {.block = {threads, 1, 1}, .dynamic_shared = 65536}, out);
    outcome.values = outcome.run->read<float>(out, 256);
    return outcome;
}

inline const std::string prepared = fill + ready + descriptors + zero;

}  // namespace tessera::emulator::test::warpgroup
