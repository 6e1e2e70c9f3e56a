#pragma once

// Builds a kernel around a few tcgen05 instructions: an image is copied to shared memory, tensor memory is allocated,
// the test's own instructions run, and columns of tensor memory are written to global memory.

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "run_ptx.hpp"

namespace tessera::emulator::test {

/// The part of the kernel that a test provides. Registers to use: %smem (u32, address of the image), %taddr (u32, first
/// allocated column), %thread, %warp, %rank (CTA in the cluster), %a0-%a19 (b32), %l0-%l19 (b64), %p0-%p9. Static
/// shared memory: control + 0 the address, + 8, + 16, + 24 mbarriers (count 1), + 32 .. + 63 free.
struct TensorKernel {
    unsigned columns = 512;  ///< to allocate
    unsigned cta_group = 1;
    unsigned ctas = 1;          ///< of the cluster
    std::string by_one;         ///< executed by thread 0 (of the even CTA)
    std::string by_all_before;  ///< executed by all threads, before `by_one`
    std::string by_all_after;   ///< by all, after a wait for the first mbarrier if `wait`
    bool wait = true;
    unsigned dump_column = 0, dump_columns = 0;  ///< lanes x columns go to `out`, per CTA
    bool sync_cluster = true;
    bool relinquish = true;
    unsigned threads = 128;

    [[nodiscard]] std::string text() const
    {
        std::string dump;
        for (unsigned c = 0; c < dump_columns; ++c) {
            dump += fmt::format(
                "    add.u32 %a0, %taddr, {};\n    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%a1}}, [%a0];\n"
                "    tcgen05.wait::ld.sync.aligned;\n    st.global.b32 [%out+{}], %a1;\n",
                dump_column + c, 4 * c);
        }
        const std::string group = fmt::format("cta_group::{}", cta_group);
        const std::string cluster_sync = ctas > 1 ? "    barrier.cluster.arrive;\n    barrier.cluster.wait;\n" : "";
        return module_text(
            "sm_100a",
            fmt::format(R"(
.extern .shared .align 1024 .b8 smem_image[];
.visible .entry kernel(.param .u64 image, .param .u32 image_bytes, .param .u64 result)
{{
    .shared .align 16 .b8 control[64];
    .reg .b32 %a<20>, %smem, %taddr, %thread, %warp, %rank, %bytes, %i, %at, %ctl, %dump;
    .reg .b64 %l<20>, %image, %from, %out, %offset;
    .reg .pred %p<10>, %more, %first, %warp0;
    .reg .b16 %h<4>;
    mov.u32 %thread, %tid.x;
    shr.u32 %warp, %thread, 5;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %smem, smem_image;
    mov.u32 %ctl, control;
    ld.param.u64 %image, [image];
    ld.param.u32 %bytes, [image_bytes];
    ld.param.u64 %out, [result];
    // each CTA has its own image and result
    mul.wide.u32 %offset, %rank, %bytes;
    add.u64 %image, %image, %offset;
    mul.lo.u32 %i, %rank, {dump_bytes};
    cvt.u64.u32 %offset, %i;
    add.u64 %out, %out, %offset;
    mul.lo.u32 %i, %thread, {row_bytes};
    cvt.u64.u32 %offset, %i;
    add.u64 %out, %out, %offset;
    mul.lo.u32 %i, %thread, 16;
copy:
    setp.lt.u32 %more, %i, %bytes;
    @!%more bra copied;
    cvt.u64.u32 %offset, %i;
    add.u64 %from, %image, %offset;
    add.u32 %at, %smem, %i;
    ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%from];
    st.shared.v4.b32 [%at], {{%a0, %a1, %a2, %a3}};
    add.u32 %i, %i, {copy_step};
    bra copy;
copied:
    fence.proxy.async.shared::cta;
    setp.eq.u32 %first, %thread, 0;
    setp.eq.u32 %warp0, %warp, 0;
    @!%first bra initialized;
    mbarrier.init.shared::cta.b64 [control+8], 1;
    mbarrier.init.shared::cta.b64 [control+16], 1;
    mbarrier.init.shared::cta.b64 [control+24], 1;
    fence.mbarrier_init.release.cluster;
initialized:
    bar.sync 0;
{sync}
    @!%warp0 bra allocated;
    tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [control], {columns};
{relinquish}
allocated:
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %taddr, [control];
{before}
    bar.sync 0;
{sync}
    @!%first bra issued;
    setp.ne.u32 %more, %rank, 0;
    @%more bra issued;
{one}
issued:
    bar.warp.sync 0xffffffff;
{wait}
{after}
{dump}
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
{sync}
    @!%warp0 bra done;
    tcgen05.dealloc.{group}.sync.aligned.b32 %taddr, {columns};
done:
    ret;
}}
)",
                        fmt::arg("dump_bytes", 128 * 4 * dump_columns), fmt::arg("row_bytes", 4 * dump_columns),
                        fmt::arg("copy_step", 16 * threads), fmt::arg("sync", sync_cluster ? cluster_sync : ""),
                        fmt::arg("group", group), fmt::arg("columns", columns), fmt::arg("before", by_all_before),
                        fmt::arg("relinquish",
                                 relinquish ? "    tcgen05.relinquish_alloc_permit." + group + ".sync.aligned;" : ""),
                        fmt::arg("one", by_one), fmt::arg("wait", wait ? wait_for("control+8", 0) : ""),
                        fmt::arg("after", by_all_after), fmt::arg("dump", dump)));
    }

    /// A loop that waits for a phase of an mbarrier, then the fence that tcgen05 requires.
    [[nodiscard]] static std::string wait_for(const std::string& barrier, unsigned parity)
    {
        static int label = 0;
        ++label;
        return fmt::format(
            "wait{0}:\n    mbarrier.try_wait.parity.shared::cta.b64 %p9, [{1}], {2};\n    @!%p9 bra wait{0};\n"
            "    tcgen05.fence::after_thread_sync;\n",
            label, barrier, parity);
    }
    /// tcgen05.commit to the first mbarrier; of both CTAs for pairs.
    [[nodiscard]] std::string commit(const std::string& barrier = "control+8") const
    {
        if (cta_group == 1) {
            return fmt::format("    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{}];\n",
                               barrier);
        }
        return fmt::format(
            "    mov.b16 %h0, 3;\n    "
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [{}], %h0;\n",
            barrier);
    }
    /// Puts descriptor `constant` with start address `offset` of the image into a 64-bit register.
    [[nodiscard]] static std::string descriptor(const std::string& reg, std::uint64_t constant, unsigned offset)
    {
        return fmt::format(
            "    add.u32 %a19, %smem, {1};\n    and.b32 %a19, %a19, 0x3FFFF;\n    shr.u32 %a19, %a19, 4;\n    "
            "cvt.u64.u32 {0}, %a19;\n"
            "    or.b64 {0}, {0}, {2:#x};\n",
            reg, offset, constant);
    }

    struct Outcome {
        LaunchResult result;
        std::vector<std::uint32_t> words;  ///< [CTA][lane][column]
        std::vector<Finding> findings;
        [[nodiscard]] unsigned count(FindingKind kind) const
        {
            return static_cast<unsigned>(
                std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.kind == kind; }));
        }
    };
    /// Runs the kernel with one image per CTA.
    [[nodiscard]] Outcome run(const std::vector<std::byte>& image, const Options& options = {}) const
    {
        PtxRun run(text());
        run.options = options;
        std::vector<std::byte> images = image;
        const auto per_cta = static_cast<std::uint32_t>((image.size() / ctas + 15) / 16 * 16);
        images.resize(std::max<std::size_t>(std::size_t{per_cta} * ctas, 16));
        const std::uint64_t source = run.buffer(images);
        const std::uint64_t target =
            run.buffer(std::vector<std::uint32_t>(std::max<std::size_t>(1, std::size_t{128} * dump_columns * ctas)));
        Outcome outcome;
        outcome.result = run.launch("kernel",
                                    {.grid = {ctas, 1, 1},
                                     .block = {threads, 1, 1},
                                     .cluster = {ctas, 1, 1},
                                     .dynamic_shared = std::max(per_cta, 16u)},
                                    source, per_cta, target);
        outcome.words = run.read<std::uint32_t>(target, std::size_t{128} * dump_columns * ctas);
        outcome.findings = run.report.findings();
        return outcome;
    }
};

}  // namespace tessera::emulator::test
