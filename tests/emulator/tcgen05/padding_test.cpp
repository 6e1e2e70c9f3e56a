// 4- and 6-bit elements in shared memory: 16 of them take 16 bytes, with padding after the data (PTX ISA, packing formats
// of tcgen05.mma kind::f8f6f4). TMA does not define the padding, and other writers may leave it out.

#include <doctest/doctest.h>

#include "reference.hpp"
#include "tensor_kernel.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// Reads of unwritten bytes by a product whose operands have the element type with code `format` in instruction
/// descriptors. Of each 16 bytes, only the words in `words` were written.
std::uint64_t unwritten_reads(unsigned format, const std::vector<unsigned>& words, Schedule schedule,
                              std::uint64_t seed)
{
    constexpr unsigned bytes = 32768, b_base = 16384;
    const std::uint64_t swizzled = MemoryLayout{Layout::swizzle_128, false, 16, 1024}.descriptor();
    const std::uint32_t form = 0x08100010 | format << 7 | format << 10;  // D f32, M 128, N 64
    TensorKernel kernel;
    std::string stores;
    for (const unsigned word : words) {
        stores += fmt::format("    st.shared.b32 [%at+{}], %a5;\n", 4 * word);
    }
    kernel.by_all_before = fmt::format(
        "    mul.lo.u32 %i, %thread, 16;\n    mov.b32 %a5, 0;\nfill:\n    add.u32 %at, %smem, %i;\n{}"
        "    add.u32 %i, %i, 2048;\n    setp.lt.u32 %more, %i, {};\n    @%more bra fill;\n"
        "    fence.proxy.async.shared::cta;\n",
        stores, bytes);
    kernel.by_one = TensorKernel::descriptor("%l0", swizzled, 0) + TensorKernel::descriptor("%l1", swizzled, b_base) +
                    fmt::format(
                        "    setp.ne.u32 %p0, 0, 0;\n    mov.b32 %a1, {:#x};\n"
                        "    tcgen05.mma.cta_group::1.kind::f8f6f4 [%taddr], %l0, %l1, %a1, %p0;\n",
                        form) +
                    kernel.commit();
    PtxRun run(kernel.text());
    run.options.schedule = schedule;
    run.options.seed = seed;
    const std::uint64_t source = run.buffer(std::vector<std::byte>(16)),
                        target = run.buffer(std::vector<std::uint32_t>(128));
    const LaunchResult result =
        run.launch("kernel", {.block = {128, 1, 1}, .dynamic_shared = bytes}, source, std::uint32_t{0}, target);
    CHECK(result.message == "");
    const std::uint64_t found = run.count(FindingKind::uninitialized_shared);
    CHECK(run.report.findings().size() == (found == 0 ? 0 : 1));
    return found;
}

}  // namespace

TEST_CASE("padding of 4- and 6-bit elements may be left unwritten, their data may not")
{
    constexpr unsigned e4m3 = 0, e2m3 = 3, e2m1 = 5;
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            CHECK(unwritten_reads(e2m1, {0, 1}, schedule, seed) == 0);
            CHECK(unwritten_reads(e2m1, {0}, schedule, seed) != 0);
            CHECK(unwritten_reads(e2m1, {1, 2, 3}, schedule, seed) != 0);
            CHECK(unwritten_reads(e2m3, {0, 1, 2}, schedule, seed) == 0);
            CHECK(unwritten_reads(e2m3, {0, 1}, schedule, seed) != 0);
            CHECK(unwritten_reads(e4m3, {0, 1, 2, 3}, schedule, seed) == 0);
            CHECK(unwritten_reads(e4m3, {0, 1, 2}, schedule, seed) != 0);
        }
    }
}
