// The rules of wgmma beyond its operands: each rule kept, and each broken.

#include "wgmma_kernel.hpp"

namespace tessera::emulator::test::warpgroup {
namespace {

TEST_CASE("a correct program has no findings in any schedule")
{
    // Two groups in flight, the second accumulates on the first; a third follows in its own registers.
    const std::string other =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f4,%f5,%f6,%f7}, %a, %b, 0, 1, 1, 0, 0;\n";
    const std::string body = prepared + fence + multiply + commit + multiply + multiply + commit + other + commit +
                             "wgmma.wait_group.sync.aligned 1;\nadd.f32 %f0, %f0, 0f3F800000;\n" + wait +
                             "add.f32 %f3, %f3, %f4;\n" + store;
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        for (std::uint64_t seed = 1; seed <= 50; ++seed) {
            const Outcome outcome = execute(body, 128, schedule, seed);
            CAPTURE(seed);
            CHECK(outcome.text() == "");
            CHECK(outcome.result.code == 0);
            for (unsigned thread = 0; thread < 128; ++thread) {
                CHECK(outcome.values[thread] == 49.0F);
                CHECK(outcome.values[128 + thread] == 64.0F);
            }
        }
    }
}

TEST_CASE("statistics count a wgmma of four warps once")
{
    const Outcome outcome = execute(prepared + fence + multiply + commit + wait + store);
    CHECK(outcome.result.statistics.mma_issued == 1);
    CHECK(outcome.result.statistics.mma_flops == 2 * 64 * 8 * 16);
    CHECK(outcome.result.statistics.mma_operand_bytes == (64 + 8) * 32);
}

TEST_CASE("partly overlapping accumulators are reported, and are right after a wait")
{
    const std::string shifted =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f0,%f2,%f3}, %a, %b, 1, 1, 1, 0, 0;\n";
    const Outcome outcome = execute(prepared + fence + multiply + shifted + commit + wait + store);
    CHECK(outcome.count(FindingKind::async_read_pending) > 0);
    CHECK(outcome.values[0] == 32.0F);
}

TEST_CASE("A registers written before the wait are reported")
{
    const std::string operands = "mov.b32 %r0, 0x3f803f80;\nmov.b32 %r1, %r0;\nmov.b32 %r2, %r0;\nmov.b32 %r3, %r0;\n";
    const std::string from_registers =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, %b, 1, 1, 1, 0;\n";
    const Outcome right =
        execute(prepared + operands + fence + from_registers + commit + wait + "mov.b32 %r1, 0;\n" + store);
    CHECK(right.text() == "");
    CHECK(right.values[0] == 16.0F);
    const Outcome wrong =
        execute(prepared + operands + fence + from_registers + commit + "mov.b32 %r1, 0;\n" + wait + store);
    CHECK(wrong.count(FindingKind::async_read_pending) > 0);
}

TEST_CASE("a missing wgmma.fence is reported")
{
    const Outcome first = execute(prepared + multiply + commit + wait + store);
    CHECK(first.count(FindingKind::invalid_operand) > 0);
    const std::string change = "add.f32 %f0, %f0, 0f3F800000;\n";
    const Outcome later =
        execute(prepared + fence + multiply + commit + wait + change + multiply + commit + wait + store);
    CHECK(later.count(FindingKind::invalid_operand) > 0);
    const Outcome right =
        execute(prepared + fence + multiply + commit + wait + change + fence + multiply + commit + wait + store);
    CHECK(right.text() == "");
    CHECK(right.values[0] == 33.0F);
    // Zeros for a product that ignores them are not read.
    const std::string first_product =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %a, %b, 0, 1, 1, 0, 0;\n";
    const Outcome unread = execute(prepared + fence + zero + first_product + commit + wait + store);
    CHECK(unread.text() == "");
    // Neither does the next product read them.
    const Outcome chain = execute(prepared + fence + zero + first_product + multiply + commit + wait + store);
    CHECK(chain.text() == "");
    CHECK(chain.values[0] == 32.0F);
    const Outcome untouched = execute(prepared + fence + multiply + commit + wait + multiply + commit + wait + store);
    CHECK(untouched.text() == "");
}

TEST_CASE("registers of A that are packed between wgmma.fence and wgmma")
{
    // nvcc packs pairs of 16 bits where they are used: after the fence, though the source fences after it has written them.
    const std::string halves =
        "mov.b32 %r0, 0x3f803f80;\nmov.b32 {%h0, %h1}, %r0;\nmov.b32 {%h2, %h3}, %r0;\n"
        "mov.b32 {%h4, %h5}, %r0;\nmov.b32 {%h6, %h7}, %r0;\n";
    const std::string packed =
        "mov.b32 %r0, {%h0, %h1};\nmov.b32 %r1, {%h2, %h3};\nmov.b32 %r2, {%h4, %h5};\nmov.b32 %r3, {%h6, %h7};\n";
    const std::string from_registers =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, %b, 1, 1, 1, 0;\n";
    const Outcome after = execute(prepared + halves + fence + packed + from_registers + commit + wait + store);
    CHECK(after.text() == "");
    CHECK(after.values[0] ==
          execute(prepared + halves + packed + fence + from_registers + commit + wait + store).values[0]);
    // What is packed must have been written before the fence, and a constant is no packing.
    for (const std::string late : {"mov.b16 %h5, 0x3f80;\n", "add.u16 %h5, %h4, 0;\n"}) {
        const Outcome wrong =
            execute(prepared + halves + fence + late + packed + from_registers + commit + wait + store);
        CHECK(wrong.count(FindingKind::invalid_operand) > 0);
    }
    const Outcome constant = execute(prepared + halves + packed + fence + "mov.b32 %r2, 0x3f803f80;\n" +
                                     from_registers + commit + wait + store);
    CHECK(constant.count(FindingKind::invalid_operand) > 0);
    // A register that gets an old value again is as good as before.
    const Outcome restored = execute(prepared + halves + packed + fence + "mov.b32 %r2, 7;\n" + packed +
                                     from_registers + commit + wait + store);
    CHECK(restored.text() == "");
}

TEST_CASE("a missing proxy fence is reported")
{
    const Outcome outcome =
        execute(fill + "bar.sync 0;\n" + descriptors + zero + fence + multiply + commit + wait + store);
    CHECK(outcome.count(FindingKind::missing_proxy_fence) > 0);
    // Like Triton's kernels: one fence of every thread, after the barrier.
    const Outcome late = execute(fill + "bar.sync 0;\nfence.proxy.async.shared::cta;\n" + descriptors + zero + fence +
                                 multiply + commit + wait + store);
    CHECK(late.text() == "");
    const Outcome too_early = execute(fill + "fence.proxy.async;\nst.shared.u32 [%s], 0;\nbar.sync 0;\n" + descriptors +
                                      zero + fence + multiply + commit + wait + store);
    CHECK(too_early.count(FindingKind::missing_proxy_fence) > 0);
}

TEST_CASE("a stage overwritten before the wait is reported in every schedule")
{
    const std::string overwrite =
        "shl.b32 %x, %me, 4;\nadd.u32 %y, %s, %x;\nst.shared.v4.b32 [%y], {%me,%me,%me,%me};\n";
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            CAPTURE(seed);
            const Outcome wrong =
                execute(prepared + fence + multiply + commit + overwrite + wait + store, 128, schedule, seed);
            CHECK(wrong.count(FindingKind::stage_overwritten) + wrong.count(FindingKind::shared_race) +
                      wrong.count(FindingKind::missing_proxy_fence) >
                  0);
            // Allowed after the wait, and a barrier for the other warps.
            const Outcome right = execute(
                prepared + fence + multiply + commit + wait + "bar.sync 0;\n" + overwrite + store, 128, schedule, seed);
            CHECK(right.text() == "");
        }
    }
    // The wait covers the four warps' common instruction, so one warp may release B for all of them.
    const std::string overwrite_b =
        "shl.b32 %x, %me, 3;\nadd.u32 %y, %s, %x;\nst.shared.v2.b32 [%y+16384], {%me,%me};\n";
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        const Outcome right = execute(prepared + fence + multiply + commit + wait + overwrite_b + store, 128,
                                      Schedule::adversarial, seed);
        CHECK(right.text() == "");
        const Outcome wrong = execute(prepared + fence + multiply + commit + overwrite_b + wait + store, 128,
                                      Schedule::adversarial, seed);
        CHECK(wrong.total() > 0);
    }
}

TEST_CASE("operands outside of shared memory or never written are reported")
{
    const Outcome outside = execute(fill + ready + descriptors + zero + "add.u64 %b, %b, 3072;\n" + fence + multiply +
                                    commit + wait + store);
    CHECK(outside.count(FindingKind::out_of_bounds) > 0);
    const Outcome unwritten =
        execute("mov.u32 %s, smem;\n" + ready + descriptors + zero + fence + multiply + commit + wait + store);
    CHECK(unwritten.count(FindingKind::uninitialized_shared) > 0);
}

TEST_CASE("wrong descriptors are reported")
{
    const auto with = [](const std::string& change) {
        return execute(prepared + change + fence + multiply + commit + wait + store)
            .count(FindingKind::invalid_descriptor);
    };
    CHECK(with("") == 0);
    CHECK(with("or.b64 %b, %b, 0x0000400000000000;\n") > 0);  // the form of tcgen05
    CHECK(with("or.b64 %b, %b, 0x2000000000000000;\n") > 0);  // bit 61: not a field of wgmma's descriptor
    CHECK(with("add.u64 %b, %b, 7;\n") > 0);                  // 112 bytes into a row: a K step does not fit
    CHECK(with("add.u64 %b, %b, 8;\n") == 0);                 // the next row: the pattern follows the addresses
    CHECK(with("or.b64 %b, %b, 0xC000;\n") > 0);              // a start address that was not masked
    CHECK(with("add.u64 %b, %b, 2;\n") == 0);                 // one K step: 32 bytes
}

TEST_CASE("disagreeing warps of a warpgroup are reported")
{
    const auto with = [](const std::string& change) {
        return execute(prepared + change + fence + multiply + commit + wait + store);
    };
    CHECK(with("setp.ge.u32 %p, %me, 96;\n@%p add.u64 %b, %b, 1024;\n").count(FindingKind::invalid_descriptor) > 0);
    CHECK(with("setp.eq.u32 %p, %me, 7;\n@%p add.u64 %a, %a, 1024;\n").count(FindingKind::invalid_descriptor) > 0);
    const std::string scaled =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %a, %b, %p, 1, 1, 0, 0;\n";
    CHECK(execute(prepared + "setp.lt.u32 %p, %me, 5;\n" + fence + scaled + commit + wait + store)
              .count(FindingKind::invalid_operand) > 0);
    // Another instruction in one of the warps.
    const std::string apart =
        "setp.ge.u32 %q, %me, 64;\n@%q bra OTHER;\n" + multiply + "bra JOIN;\nOTHER:\n" + multiply + "JOIN:\n";
    CHECK(execute(prepared + fence + apart + commit + wait + store).count(FindingKind::divergent_aligned) > 0);
}

TEST_CASE("a missing warp of the warpgroup is a deadlock")
{
    const Outcome outcome =
        execute(prepared + "setp.ge.u32 %p, %me, 96;\n@%p exit;\n" + fence + multiply + commit + wait + store);
    CHECK(outcome.count(FindingKind::deadlock) > 0);
    CHECK(outcome.result.code != 0);
    CHECK(outcome.text().find("warp 3") != std::string::npos);
}

TEST_CASE("a warpgroup of three warps is reported")
{
    CHECK(execute(prepared + fence + multiply + commit + wait + store, 96).count(FindingKind::invalid_operand) > 0);
}

TEST_CASE("execution by part of a warp is reported")
{
    const Outcome outcome = execute(prepared + fence + "setp.lt.u32 %p, %me, 16;\n@%p bra SKIP;\n" + multiply +
                                    "SKIP:\n" + commit + wait + store);
    CHECK(outcome.count(FindingKind::divergent_aligned) > 0);
}

TEST_CASE("wgmma is refused on other devices and in wrong forms")
{
    const auto error_on = [](const std::string& text, const char* device) {
        PtxRun run(text, device);
        return run.module().find_kernel("k")->load_error;
    };
    CHECK(error_on(kernel(multiply), "h200") == "");
    for (const char* other : {"b200", "thor", "rtx5090", "gb10"}) {
        CHECK(error_on(kernel(multiply), other).find("9.0") != std::string::npos);
    }
    const auto refused = [&](const std::string& instruction) { return !error_on(kernel(instruction), "h200").empty(); };
    CHECK(refused("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%f0,%f1,%f2,%f3}, %a, %b, 1;\n"));
    CHECK(refused("wgmma.mma_async.sync.aligned.m64n8k8.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %a, %b, 1, 1, 1, 0, 0;\n"));
    CHECK(refused("wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%f0,%f1}, %a, %b, 1, 1, 1, 0, 0;\n"));
    CHECK(refused("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2}, %a, %b, 1, 1, 1, 0, 0;\n"));
    CHECK(refused("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %a, %b, 1, 2, 1, 0, 0;\n"));
    CHECK(refused("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0,%f1,%f2,%f3}, %a, %b, 1, 1, 1, 0, 0;\n"));
    CHECK(refused("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.xor.popc {%f0,%f1,%f2,%f3}, %a, %b, 1;\n"));
    CHECK(refused("wgmma.wait_group.sync.aligned %x;\n"));
    CHECK(refused("wgmma.fence.sync;\n"));
    CHECK(refused("setmaxnreg.inc.sync.aligned.u32 20;\n"));
    CHECK(refused("setmaxnreg.inc.sync.aligned.u32 28;\n"));
    CHECK(refused("setmaxnreg.inc.sync.aligned.u32 264;\n"));
}

}  // namespace
}  // namespace tessera::emulator::test::warpgroup
