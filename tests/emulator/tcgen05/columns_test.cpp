// Which lanes and columns of tensor memory hold a value: loads of what was never written, scale factors and
// accumulators that share columns.

#include "fault_kernel.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;
using namespace tessera::emulator::test::faults;

namespace {

constexpr std::uint32_t f16_64x64 = 0x04100010;

/// All threads load a word of their own lane into %a1 and do `use` with it.
TensorKernel load_and(const std::string& use, std::uint32_t instruction, const std::string& form = "32x32b.x1",
                      const std::string& registers = "%a1")
{
    TensorKernel kernel = good_kernel();
    kernel.dump_columns = 0;
    kernel.by_one = descriptors() + mma(false, instruction) + commit();
    kernel.by_all_after = "    tcgen05.ld.sync.aligned." + form + ".b32 {" + registers +
                          "}, [%taddr];\n    tcgen05.wait::ld.sync.aligned;\n" + use;
    return kernel;
}

/// All threads store the value to columns 64 to 71.
std::string fill_columns(const std::string& value)
{
    std::string text = "    mov.b32 %a1, " + value + ";\n";
    for (unsigned column = 64; column < 72; ++column) {
        text += fmt::format("    add.u32 %a0, %taddr, {};\n    tcgen05.st.sync.aligned.32x32b.x1.b32 [%a0], {{%a1}};\n",
                            column);
    }
    return text + "    tcgen05.wait::st.sync.aligned;\n    tcgen05.fence::before_thread_sync;\n";
}

const std::string store_all =
    "    mul.lo.u32 %a2, %thread, 4;\n    add.u32 %a2, %a2, %smem;\n    st.shared.b32 [%a2], %a1;\n";
/// Only the lanes that an MMA with M = 64 writes: the lower half of each warp's.
const std::string store_half =
    "    and.b32 %a3, %thread, 16;\n    setp.eq.u32 %p1, %a3, 0;\n"
    "    mul.lo.u32 %a2, %thread, 4;\n    add.u32 %a2, %a2, %smem;\n"
    "    @%p1 st.shared.b32 [%a2], %a1;\n";

}  // namespace

TEST_CASE("columns: lanes that an MMA with M = 64 leaves out are reported when they are used, not when they are loaded")
{
    expect_clean(load_and("", f16_64x64));
    expect_clean(load_and(store_half, f16_64x64));
    // Arithmetic and a selection are no use yet.
    expect_clean(
        load_and("    add.u32 %a1, %a1, 1;\n    and.b32 %a3, %thread, 16;\n    setp.eq.u32 %p1, %a3, 0;\n"
                 "    selp.b32 %a1, %a1, 0, %p1;\n" +
                     store_all,
                 f16_64x64));
    expect_clean(load_and(store_all, f16_128x64));
    expect(load_and(store_all, f16_64x64), FindingKind::uninitialized_tmem, "tcgen05.ld reads column 0, lane ");
    expect(load_and("    add.u32 %a1, %a1, 1;\n" + store_all, f16_64x64), FindingKind::uninitialized_tmem,
           "other lanes of the column were");
    expect(load_and("    setp.eq.u32 %p1, %a1, 0;\n    @%p1 st.shared.b32 [%smem], %thread;\n", f16_64x64),
           FindingKind::uninitialized_tmem, "the value is used by");
}

TEST_CASE("columns: loads of 16 lanes take only what an MMA with M = 64 writes")
{
    // Thread t gets lanes t / 4 and t / 4 + 8 of columns t % 4 ...: all written.
    const std::string use = "    add.u32 %a1, %a1, %a4;\n" + store_all;
    expect_clean(load_and(use, f16_64x64, "16x128b.x1", "%a1, %a4"));
    expect_clean(load_and(use, f16_64x64, "16x64b.x2", "%a1, %a4"));
    // The upper 16 lanes of each quarter.
    TensorKernel upper = load_and(use, f16_64x64, "16x128b.x1", "%a1, %a4");
    upper.by_all_after =
        "    add.u32 %taddr, %taddr, 0x100000;\n" + upper.by_all_after + "    sub.u32 %taddr, %taddr, 0x100000;\n";
    expect(upper, FindingKind::uninitialized_tmem, "tcgen05.ld reads column 0, lane ");
}

TEST_CASE("columns: a load that is wider than the accumulator")
{
    // N = 64: the 65th column was never written.
    std::string registers = "%a1";
    for (unsigned i = 1; i < 128; ++i) {
        registers += i < 64 ? ", %a2" : ", %a3";
    }
    const auto wide = [&](const std::string& use) {
        std::string text = "    .reg .b32 %w<128>;\n";
        std::string list = "%w0";
        for (unsigned i = 1; i < 128; ++i) {
            list += fmt::format(", %w{}", i);
        }
        TensorKernel kernel = load_and(use, f16_128x64, "32x32b.x128", list);
        kernel.by_all_before = text;
        return kernel;
    };
    expect_clean(wide(""));
    expect_clean(wide("    mov.b32 %a1, %w63;\n" + store_all));
    expect(wide("    mov.b32 %a1, %w64;\n" + store_all), FindingKind::uninitialized_tmem, "column 64, lane");
}

TEST_CASE("columns: disabled lanes of D keep what they had, which may be nothing")
{
    const auto masked = [](const std::string& before) {
        TensorKernel kernel = load_and(store_all, f16_128x64);
        kernel.by_all_before = before;
        kernel.by_one =
            descriptors() +
            "    setp.ne.u32 %p0, 0, 0;\n    mov.b32 %a1, 0x08100010;\n    mov.b32 %a2, 0x80;\n    mov.b32 "
            "%a3, 0;\n    tcgen05.mma.cta_group::1.kind::f16 [%taddr], %l0, %l1, %a1, {%a2, %a3, %a3, %a3}, "
            "%p0;\n" +
            commit();
        return kernel;
    };
    expect(masked(""), FindingKind::uninitialized_tmem, "lane 7");
    expect_clean(
        masked("    tcgen05.st.sync.aligned.32x32b.x1.b32 [%taddr], {%thread};\n"
               "    tcgen05.wait::st.sync.aligned;\n    tcgen05.fence::before_thread_sync;\n"));
}

TEST_CASE("columns: scale factors and A must not share columns with D")
{
    // Scale factors of 1.
    const auto scaled = [](unsigned d, unsigned a, unsigned b) {
        TensorKernel kernel = good_kernel();
        kernel.by_all_before = fill_columns("0x7f7f7f7f");
        kernel.dump_column = d;
        kernel.by_one = descriptors() +
                        fmt::format(
                            "    setp.ne.u32 %p0, 0, 0;\n    mov.b32 %a1, 0x8900000;\n    add.u32 %a2, %taddr, "
                            "{};\n    add.u32 %a3, %taddr, {};\n    add.u32 %a4, %taddr, {};\n"
                            "    tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%a2], %l0, %l1, %a1, "
                            "[%a3], [%a4], %p0;\n",
                            d, a, b) +
                        commit();
        return kernel;
    };
    expect_clean(scaled(0, 64, 68));
    expect_clean(scaled(128, 64, 68));
    expect_clean(scaled(0, 64, 64));  // equal scale factors for both
    expect(scaled(32, 64, 68), FindingKind::invalid_operand, "scale factors of A's rows in columns 64 to 67", false);
    expect(scaled(5, 64, 68), FindingKind::invalid_operand, "overlap D, columns 5 to 68", false);
    expect(scaled(67, 68, 64), FindingKind::invalid_operand, "scale factors of A's rows in columns 68 to 71", false);
    expect(scaled(2, 68, 64), FindingKind::invalid_operand, "scale factors of B's rows", false);
    // A of f16 in tensor memory has 8 columns.
    const auto from_tensor_memory = [](unsigned d, unsigned a) {
        TensorKernel kernel = good_kernel();
        kernel.by_all_before = fill_columns("0x3c003c00");
        kernel.dump_column = d;
        kernel.by_one = descriptors() +
                        fmt::format(
                            "    setp.ne.u32 %p0, 0, 0;\n    mov.b32 %a1, 0x08100010;\n    add.u32 %a2, %taddr, "
                            "{};\n    add.u32 %a3, %taddr, {};\n"
                            "    tcgen05.mma.cta_group::1.kind::f16 [%a2], [%a3], %l1, %a1, %p0;\n",
                            d, a) +
                        commit();
        return kernel;
    };
    expect_clean(from_tensor_memory(0, 64));
    expect_clean(from_tensor_memory(72, 64));
    expect(from_tensor_memory(1, 64), FindingKind::invalid_operand, "A in columns 64 to 71", false);
    expect(from_tensor_memory(71, 64), FindingKind::invalid_operand, "overlaps D, columns 71 to 134", false);
}

TEST_CASE("columns: an accumulator that destroys a part of another, which nobody has read")
{
    // Two accumulators of 64 columns; the second starts at `column`. Each is committed and waited for.
    const auto two = [](unsigned column, const std::string& between, std::uint32_t second = f16_128x64) {
        TensorKernel kernel = good_kernel();
        kernel.dump_columns = 0;
        kernel.by_all_after =
            between + "    tcgen05.fence::before_thread_sync;\n    bar.sync 0;\n    @!%first bra later;\n" +
            "    tcgen05.fence::after_thread_sync;\n" + descriptors() +
            fmt::format("    add.u32 %a7, %taddr, {};\n", column) + mma(false, second, "%a7") + commit("control+16") +
            "later:\n    bar.warp.sync 0xffffffff;\n" + TensorKernel::wait_for("control+16", 0);
        return kernel;
    };
    std::string load_half;
    for (unsigned column = 32; column < 64; ++column) {
        load_half += load(column);
    }
    expect_clean(two(64, ""));
    expect_clean(two(32, load_half));
    expect_clean(two(0, ""));  // the whole accumulator: it may be of no use
    expect_clean(two(0, "", 0x08200010));
    expect(two(32, ""), FindingKind::stage_overwritten, "columns 32 to 95");
    expect(two(63, ""), FindingKind::stage_overwritten, "wrote to columns 0 to 63");
    // Half of the lanes of the old one.
    expect(two(0, "", f16_64x64), FindingKind::stage_overwritten, "nothing has read");
    // Without a wait in between the two are not ordered either.
    TensorKernel kernel = good_kernel();
    kernel.dump_columns = 96;
    kernel.by_one = "    add.u32 %a7, %taddr, 32;\n" + descriptors() + mma() + mma(false, f16_128x64, "%a7") + commit();
    expect(kernel, FindingKind::accumulator_before_commit, "another accumulator", false);
}
