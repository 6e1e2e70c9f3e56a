// Operand tiles that wgmma and tcgen05 read otherwise than a tensor copy wrote them: each fault is found by name and
// line, and the right descriptor beside it is not reported.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>

#include "machine/swizzle.hpp"
#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// A tensor map over memory of its own. Rows of dimension 1 are `pitch` bytes apart.
TensorMap map_of(PtxRun& run, TensorElement element, TensorSwizzle swizzle, std::vector<std::uint32_t> box,
                 std::vector<std::uint64_t> extents, std::vector<std::uint64_t> strides)
{
    TensorMap map;
    map.element = element;
    map.swizzle = swizzle;
    map.rank = static_cast<std::uint32_t>(box.size());
    for (unsigned i = 0; i < map.rank; ++i) {
        map.box[i] = box[i];
        map.extents[i] = extents[i];
        if (i + 1 < map.rank) {
            map.strides[i] = strides[i];
        }
    }
    map.address = run.buffer(std::vector<std::uint32_t>(1 << 17));
    REQUIRE(refusals(map) == "");
    return map;
}

/// Rows of 256 elements of 16 bits; a box has `columns` x `rows` of them.
TensorMap matrix(PtxRun& run, unsigned columns, unsigned rows, TensorSwizzle swizzle = TensorSwizzle::span_128,
                 TensorElement element = TensorElement::bf16)
{
    return map_of(run, element, swizzle, {columns, rows}, {256, 512}, {512});
}

/// The same matrix as core matrices: 8 columns, rows, groups of 8 columns.
TensorMap core_matrices(PtxRun& run, unsigned rows, unsigned groups)
{
    return map_of(run, TensorElement::bf16, TensorSwizzle::none, {8, rows, groups}, {8, 512, 32}, {512, 16});
}

struct Descriptor {
    unsigned offset = 0, leading = 16, stride = 1024;
    TensorSwizzle swizzle = TensorSwizzle::span_128;

    [[nodiscard]] std::string text(const char* reg, bool tcgen05) const
    {
        unsigned code = 0;
        switch (swizzle) {
            case TensorSwizzle::span_32: code = 3; break;
            case TensorSwizzle::span_64: code = 2; break;
            case TensorSwizzle::span_128: code = 1; break;
            default: break;
        }
        std::uint64_t bits = std::uint64_t{leading} >> 4 << 16 | std::uint64_t{stride} >> 4 << 32;
        bits |= tcgen05 ? std::uint64_t{1} << 46 | std::uint64_t{2 * code} << 61 : std::uint64_t{code} << 62;
        if (swizzle == TensorSwizzle::span_128_atom_32) {
            bits |= std::uint64_t{1} << 61;
        }
        return fmt::format("add.u32 %x, %s, {1};\nshr.u32 %x, %x, 4;\ncvt.u64.u32 {0}, %x;\nor.b64 {0}, {0}, {2:#x};\n",
                           reg, offset, bits);
    }
};

/// A tensor copy of 'a' or 'b' to `offset` in shared memory, of the box at the coordinates.
std::string load(char map, unsigned offset, const std::string& coordinates, unsigned rank = 2)
{
    return fmt::format(
        "add.u32 %x, %s, {};\ncp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes [%x], "
        "[%map_{}, {{{}}}], [%bar];\n",
        offset, rank, map, coordinates);
}

struct Case {
    std::string loads = load('a', 0, "64, 64") + load('b', 16384, "0, 128");
    unsigned bytes = 16384 + 8192;  ///< of the loads
    Descriptor a{}, b{.offset = 16384};
    std::string between;  ///< by all threads, between the loads and the product
    std::string product;

    /// The same kernel for both generations, but for the product.
    [[nodiscard]] std::string text(bool tcgen05) const
    {
        return module_text(
            tcgen05 ? "sm_100a" : "sm_90a",
            ".extern .shared .align 1024 .b8 smem[];\n"
            ".visible .entry k(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128])\n.maxntid 128\n{\n"
            ".shared .align 8 .b64 bars[2];\n.shared .b32 where;\n"
            ".reg .pred %p, %one;\n.reg .b32 %s, %x, %y, %z, %me, %bar, %d;\n.reg .b64 %map_a, %map_b, %la, %lb;\n"
            ".reg .f32 %f<64>;\n"
            "mov.b64 %map_a, a;\ncvta.param.u64 %map_a, %map_a;\nmov.b64 %map_b, b;\ncvta.param.u64 %map_b, %map_b;\n"
            "mov.u32 %s, smem;\nmov.u32 %me, %tid.x;\nmov.u32 %bar, bars;\nsetp.eq.u32 %one, %me, 0;\n"
            // Zeros everywhere, so that what a wrong descriptor reaches has been written.
            "shl.b32 %x, %me, 4;\nadd.u32 %x, %x, %s;\nmov.u32 %y, 48;\nmov.u32 %z, 0;\n"
            "zeros: st.shared.v4.b32 [%x], {%z, %z, %z, %z};\nadd.u32 %x, %x, 2048;\nsub.u32 %y, %y, 1;\n"
            "setp.ne.u32 %p, %y, 0;\n@%p bra zeros;\nfence.proxy.async;\nbar.sync 0;\n"
            "@!%one bra ready;\nmbarrier.init.shared::cta.b64 [bars], 1;\nmbarrier.init.shared::cta.b64 [bars+8], 1;\n"
            "fence.mbarrier_init.release.cluster;\n"
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], " +
                std::to_string(bytes) + ";\n" + loads +
                "ready: bar.sync 0;\n"
                "again: mbarrier.try_wait.parity.shared::cta.b64 %p, [bars], 0;\n@!%p bra again;\n" +
                between + a.text("%la", tcgen05) + b.text("%lb", tcgen05) +
                (tcgen05 ? "setp.lt.u32 %p, %me, 32;\n@!%p bra allocated;\n"
                           "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 128;\n"
                           "allocated: bar.sync 0;\nld.shared.u32 %d, [where];\n@!%one bra issued;\nsetp.ne.u32 %p, 0, "
                           "0;\n" +
                               product +
                               "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bars+8];\n"
                               "issued:\nlater: mbarrier.try_wait.parity.shared::cta.b64 %p, [bars+8], 0;\n@!%p bra "
                               "later;\nbar.sync 0;\nsetp.lt.u32 %p, %me, 32;\n@!%p ret;\n"
                               "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 128;\n"
                         : "wgmma.fence.sync.aligned;\n" + product +
                               "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n") +
                "ret;\n}\n");
    }
};

/// 64 x 64 x 16 of bf16.
std::string wgmma(bool a_mn = false, bool b_mn = false, const std::string& type = "bf16", unsigned n = 64)
{
    std::string d = "%f0";
    for (unsigned i = 1; i < n / 2; ++i) {
        d += fmt::format(", %f{}", i);
    }
    return fmt::format("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, %la, %lb, 0, 1, 1, {}, {};\n", n, type,
                       type, d, a_mn ? 1 : 0, b_mn ? 1 : 0);
}

/// 128 x 64; `types` are the fields of the instruction descriptor from bit 7 on: 0x9 is bf16.
std::string mma(const std::string& kind = "f16", unsigned types = 0x9, unsigned majors = 0)
{
    return fmt::format("tcgen05.mma.cta_group::1.kind::{} [%d], %la, %lb, {:#x}, %p;\n", kind,
                       0x10U | types << 7 | majors << 15 | (64U >> 3) << 17 | (128U >> 4) << 24);
}

using Maps = std::function<std::pair<TensorMap, TensorMap>(PtxRun&)>;

/// Runs the case in every schedule. `words`: of the one finding; empty: there is none. `line`: that it names.
void check(const Case& test, bool tcgen05, const Maps& maps, const std::string& words)
{
    const std::string text = test.text(tcgen05);
    under_every_schedule(
        text, tcgen05 ? "b200" : "h200",
        [&](PtxRun& run) {
            run.options.numerics = Numerics::fast;
            const auto [a, b] = maps(run);
            const LaunchResult result =
                run.launch("k", {.block = {128, 1, 1}, .dynamic_shared = 98304}, encode(a), encode(b));
            if (words.empty()) {
                REQUIRE_CLEAN(run, result);
                return;
            }
            INFO(findings_text(run));
            REQUIRE(result.code == 0);
            REQUIRE(run.report.findings().size() == 1);
            const Finding finding = run.report.findings()[0];
            CHECK(name_of(finding.kind) == "layout-mismatch");
            CHECK(finding.message.find(words) != std::string::npos);
            CHECK(finding.ptx_text.find(tcgen05 ? "tcgen05.mma" : "wgmma") == 0);
            // It names a line with a tensor copy.
            unsigned line = 0;
            REQUIRE(std::sscanf(finding.message.substr(finding.message.find("PTX line ")).c_str(), "PTX line %u",
                                &line) == 1);
            std::size_t at = 0;
            for (unsigned i = 1; i < line; ++i) {
                at = text.find('\n', at) + 1;
            }
            CHECK(text.compare(at, 20, "cp.async.bulk.tensor") == 0);
        },
        3);
}

const Maps plain = [](PtxRun& run) { return std::pair{matrix(run, 64, 128), matrix(run, 64, 64)}; };

Case wgmma_case()
{
    Case test;
    test.product = wgmma();
    return test;
}

Case mma_case()
{
    Case test;
    test.product = mma();
    return test;
}

}  // namespace

TEST_CASE("layouts: every K step of a swizzled tile is right, and a descriptor with another swizzle is found")
{
    for (const bool tcgen05 : {false, true}) {
        Case test = tcgen05 ? mma_case() : wgmma_case();
        for (const unsigned step : {0U, 32U, 64U, 96U}) {
            test.a.offset = step;
            test.b.offset = 16384 + step;
            check(test, tcgen05, plain, "");
        }
        test.a.offset = 0;
        test.b.offset = 16384;
        for (const TensorSwizzle wrong : {TensorSwizzle::none, TensorSwizzle::span_32, TensorSwizzle::span_64}) {
            test.a.swizzle = wrong;
            check(test, tcgen05, plain, "the same swizzle in the tensor map and in the descriptor");
        }
    }
}

TEST_CASE("layouts: the narrower swizzles")
{
    for (const bool tcgen05 : {false, true}) {
        for (const TensorSwizzle mode : {TensorSwizzle::span_32, TensorSwizzle::span_64}) {
            const unsigned span = swizzle_span(mode);
            Case test = tcgen05 ? mma_case() : wgmma_case();
            test.bytes = 192 * span;
            test.a = {.stride = 8 * span, .swizzle = mode};
            test.b = {.offset = 16384, .stride = 8 * span, .swizzle = mode};
            const Maps maps = [&](PtxRun& run) {
                return std::pair{matrix(run, span / 2, 128, mode), matrix(run, span / 2, 64, mode)};
            };
            check(test, tcgen05, maps, "");
            test.a.swizzle = TensorSwizzle::span_128;
            check(test, tcgen05, maps, "the 128-byte swizzle (");
        }
    }
}

TEST_CASE("layouts: a tensor map without swizzle under a descriptor with one")
{
    for (const bool tcgen05 : {false, true}) {
        const Case test = tcgen05 ? mma_case() : wgmma_case();
        const auto maps = [](TensorElement element, std::uint64_t width) {
            return [=](PtxRun& run) {
                return std::pair{map_of(run, element, TensorSwizzle::none, {64, 128}, {width, 512}, {2 * width}),
                                 matrix(run, 64, 64)};
            };
        };
        check(test, tcgen05, maps(TensorElement::bf16, 256), "the same swizzle");
        check(test, tcgen05, maps(TensorElement::u16, 256), "the same swizzle");
        // The host may have swizzled what is one piece of bytes.
        check(test, tcgen05, maps(TensorElement::u16, 64), "");
    }
}

TEST_CASE("layouts: a wrong stride of a swizzled tile that stays within shared memory")
{
    for (const bool tcgen05 : {false, true}) {
        Case test = tcgen05 ? mma_case() : wgmma_case();
        for (const unsigned wrong : {512U, 2048U}) {
            test.b.stride = wrong;
            check(test, tcgen05, plain, "from one group of 8 lines to the next would be 1024");
        }
    }
}

TEST_CASE("layouts: tiles of many boxes, and boxes of several tiles, are right")
{
    for (const bool tcgen05 : {false, true}) {
        Case test = tcgen05 ? mma_case() : wgmma_case();
        test.loads = load('b', 16384, "0, 128");
        for (unsigned i = 0; i < 16; ++i) {
            test.loads += load('a', 1024 * i, fmt::format("64, {}", 8 * (15 - i)));
        }
        check(test, tcgen05, [](PtxRun& run) { return std::pair{matrix(run, 64, 8), matrix(run, 64, 64)}; }, "");
        // Two k-blocks in one box; the second is used.
        test.loads = load('a', 0, "0, 0, 0", 3) + load('b', 32768, "0, 0");
        test.bytes = 32768 + 8192;
        test.a.offset = 16384 + 64;
        test.b.offset = 32768 + 64;
        const Maps maps = [](PtxRun& run) {
            return std::pair{
                map_of(run, TensorElement::bf16, TensorSwizzle::span_128, {64, 128, 2}, {64, 512, 4}, {512, 128}),
                matrix(run, 64, 64)};
        };
        check(test, tcgen05, maps, "");
    }
}

TEST_CASE("layouts: MN-major operands, with the leading byte offset between their blocks")
{
    for (const bool tcgen05 : {false, true}) {
        Case test = tcgen05 ? mma_case() : wgmma_case();
        // A is 128 (or 64) x 16: lines of K, blocks of 64 elements along M. The boxes are 64 x 64.
        test.product = tcgen05 ? mma("f16", 0x9, 1) : wgmma(false, true);
        test.loads = load('a', 0, "0, 64") + load('a', 8192, "64, 64") + load('b', 16384, "0, 128");
        Descriptor mn{.leading = 8192};
        const Maps maps = [](PtxRun& run) { return std::pair{matrix(run, 64, 64), matrix(run, 64, 64)}; };
        if (!tcgen05) {  // B of 64 columns has one block: take 128
            test.a.offset = 16384;
            test.b = mn;
            test.product = wgmma(false, true, "bf16", 128);
        } else {
            test.a = mn;
        }
        Descriptor& wrong = tcgen05 ? test.a : test.b;
        const unsigned last = wrong.offset + 6144;
        for (const unsigned step : {0U, 2048U, last}) {
            wrong.offset = step;
            check(test, tcgen05, maps, "");
        }
        wrong.offset = 0;
        for (const unsigned leading : {16U, 1024U, 4096U, 9216U}) {
            wrong.leading = leading;
            check(test, tcgen05, maps, "correct the leading byte offset");
        }
        // Both blocks in one box.
        wrong.leading = 8192;
        test.loads = load('a', 0, "0, 64, 0", 3) + load('b', 16384, "0, 128");
        const Maps one_box = [](PtxRun& run) {
            return std::pair{
                map_of(run, TensorElement::bf16, TensorSwizzle::span_128, {64, 64, 2}, {64, 512, 4}, {512, 128}),
                matrix(run, 64, 64)};
        };
        check(test, tcgen05, one_box, "");
        wrong.leading = 4096;
        check(test, tcgen05, one_box, "correct the leading byte offset");
    }
}

TEST_CASE("layouts: core matrices without swizzle, with both strides in turn wrong")
{
    for (const bool tcgen05 : {false, true}) {
        Case test = tcgen05 ? mma_case() : wgmma_case();
        test.loads = load('a', 0, "0, 64, 8", 3) + load('b', 16384, "0, 128");
        test.bytes = 128 * 16 * 4 + 8192;
        test.a = {.leading = 2048, .stride = 128, .swizzle = TensorSwizzle::none};
        const Maps maps = [](PtxRun& run) { return std::pair{core_matrices(run, 128, 4), matrix(run, 64, 64)}; };
        check(test, tcgen05, maps, "");
        test.a.offset = 4096;
        check(test, tcgen05, maps, "");
        test.a = {.leading = 128, .stride = 2048, .swizzle = TensorSwizzle::none};
        check(test, tcgen05, maps, "correct the leading byte offset");
        test.a = {.leading = 1024, .stride = 128, .swizzle = TensorSwizzle::none};
        check(test, tcgen05, maps, "correct the leading byte offset");
        test.a = {.leading = 2048, .stride = 64, .swizzle = TensorSwizzle::none};
        check(test, tcgen05, maps, "from one group of 8 lines to the next would be 128");
        // A column of core matrices in a box of its own.
        test.loads = load('a', 0, "64, 0") + load('a', 2048, "72, 0") + load('b', 16384, "0, 128");
        test.bytes = 2 * 2048 + 8192;
        test.a = {.leading = 2048, .stride = 128, .swizzle = TensorSwizzle::none};
        const Maps columns = [](PtxRun& run) {
            return std::pair{matrix(run, 8, 128, TensorSwizzle::none), matrix(run, 64, 64)};
        };
        check(test, tcgen05, columns, "");
        test.a.leading = 1920;
        check(test, tcgen05, columns, "correct the leading byte offset");
    }
}

TEST_CASE("layouts: types that disagree are found, and types that only give a width are not")
{
    const auto maps = [](TensorElement element) {
        return [=](PtxRun& run) {
            return std::pair{matrix(run, 64, 128), matrix(run, 64, 64, TensorSwizzle::span_128, element)};
        };
    };
    check(wgmma_case(), false, maps(TensorElement::f16), "takes B as bf16, but it is f16");
    check(mma_case(), true, maps(TensorElement::f16), "takes B as bf16, but it is f16");
    for (const TensorElement raw : {TensorElement::u16, TensorElement::bf16}) {
        check(wgmma_case(), false, maps(raw), "");
        check(mma_case(), true, maps(raw), "");
    }
    Case test = mma_case();
    test.product = mma("f16", 0);
    check(test, true, plain, "takes A as f16, but it is bf16");
    test.product = wgmma(false, false, "f16");
    check(test, false, plain, "takes A as f16, but it is bf16");
    // f32 data as tf32, K-major.
    test.product = mma("tf32", 0x12);
    const auto words = [](TensorElement element) {
        return [=](PtxRun& run) {
            return std::pair{map_of(run, element, TensorSwizzle::span_128, {32, 128}, {128, 512}, {512}),
                             map_of(run, TensorElement::u32, TensorSwizzle::span_128, {32, 64}, {128, 512}, {512})};
        };
    };
    for (const TensorElement right :
         {TensorElement::f32, TensorElement::tf32, TensorElement::u32, TensorElement::s32}) {
        check(test, true, words(right), "");
    }
    test.product = mma("f16", 0);
    check(test, true, words(TensorElement::f32), "takes A as f16, but it is f32");
    // 8-bit types have no type of their own in tensor maps.
    test.product = mma("f8f6f4", 0x8);
    const Maps bytes = [](PtxRun& run) {
        return std::pair{map_of(run, TensorElement::u8, TensorSwizzle::span_128, {128, 128}, {512, 512}, {512}),
                         map_of(run, TensorElement::u8, TensorSwizzle::span_128, {128, 64}, {512, 512}, {512})};
    };
    check(test, true, bytes, "");
}

TEST_CASE("layouts: 4-bit elements with and without padding")
{
    const auto maps = [](TensorElement element) {
        return [=](PtxRun& run) {
            const std::uint64_t width = element == TensorElement::u4_align8 ? 512 : 1024;
            return std::pair{map_of(run, element, TensorSwizzle::span_128,
                                    {element == TensorElement::u4_align8 ? 256U : 128U, 128}, {width, 512}, {512}),
                             map_of(run, TensorElement::u8, TensorSwizzle::span_128, {128, 64}, {512, 512}, {512})};
        };
    };
    Case test = mma_case();
    test.product = mma("f8f6f4", 0x5);  // A is e2m1, B e4m3
    test.loads = load('a', 0, "0, 64") + load('b', 16384, "0, 128");
    test.bytes = 8192 + 8192;  // padding is not counted
    check(test, true, maps(TensorElement::u4_align16), "");
    test.bytes = 16384 + 8192;
    check(test, true, maps(TensorElement::u4_align8), "takes A as e2m1, but it is packed 4-bit elements");
}

TEST_CASE("layouts: MN-major tf32 needs the 32-byte atom in the tensor map, too")
{
    Case test = mma_case();
    test.product = mma("tf32", 0x12, 1);
    test.loads = load('b', 32768, "0, 128");
    for (unsigned i = 0; i < 4; ++i) {
        test.loads += load('a', 2048 * i, fmt::format("{}, 0", 32 * i));
    }
    test.bytes = 4 * 2048 + 8192;
    test.a = {.leading = 2048, .stride = 512, .swizzle = TensorSwizzle::span_128_atom_32};
    test.b.offset = 32768;
    const auto maps = [](TensorSwizzle mode) {
        return [=](PtxRun& run) {
            return std::pair{map_of(run, TensorElement::f32, mode, {32, 16}, {128, 512}, {512}),
                             map_of(run, TensorElement::f32, TensorSwizzle::span_128, {32, 64}, {128, 512}, {512})};
        };
    };
    check(test, true, maps(TensorSwizzle::span_128_atom_32), "");
    check(test, true, maps(TensorSwizzle::span_128), "the same swizzle");
}

TEST_CASE("layouts: an instruction whose M or N is larger than the tile runs on into the other operand")
{
    for (const bool tcgen05 : {false, true}) {
        // B's tile has 32 rows, and A comes behind it.
        Case test = tcgen05 ? mma_case() : wgmma_case();
        test.loads = load('b', 0, "0, 128") + load('a', 4096, "0, 64");
        test.bytes = 16384 + 4096;
        test.a.offset = 4096;
        test.b.offset = 0;
        const Maps maps = [](PtxRun& run) { return std::pair{matrix(run, 64, 128), matrix(run, 64, 32)}; };
        check(test, tcgen05, maps, "reads B beyond its tile, from shared 0x1800 on, where A is: N of");
        // The same with rows 32 to 63 of B in between.
        test.loads = load('b', 0, "0, 128") + load('b', 4096, "0, 160") + load('a', 8192, "0, 64");
        test.bytes = 16384 + 8192;
        test.a.offset = 8192;
        check(test, tcgen05, maps, "");
        // A times A transposed.
        test.loads = load('a', 0, "0, 64");
        test.bytes = 16384;
        test.a.offset = 0;
        check(test, tcgen05, maps, "");
        test.b.offset = 8192;
        check(test, tcgen05, maps, "");
    }
    // M = 128 over 64 rows.
    Case test = mma_case();
    test.loads = load('a', 0, "64, 64") + load('b', 8192, "0, 128");
    test.bytes = 16384;
    test.b.offset = 8192;
    check(
        test, true, [](PtxRun& run) { return std::pair{matrix(run, 64, 64), matrix(run, 64, 64)}; },
        "reads A beyond its tile, from shared 0x2800 on, where B is: M of");
}

TEST_CASE("layouts: what a store has overwritten since is unknown")
{
    for (const bool tcgen05 : {false, true}) {
        Case test = tcgen05 ? mma_case() : wgmma_case();
        test.a = {.leading = 2048, .stride = 128, .swizzle = TensorSwizzle::none};
        check(test, tcgen05, plain, "the same swizzle");
        // The threads arrange the tile anew.
        test.between =
            "shl.b32 %x, %me, 4;\nadd.u32 %x, %x, %s;\nmov.u32 %y, 8;\nmov.u32 %z, 0;\nbar.sync 0;\n"
            "fill: st.shared.v4.b32 [%x], {%z, %z, %z, %z};\nadd.u32 %x, %x, 2048;\nsub.u32 %y, %y, 1;\nsetp.ne.u32 "
            "%p, %y, 0;\n@%p bra fill;\nfence.proxy.async;\nbar.sync 0;\n";
        check(test, tcgen05, plain, "");
    }
}
