// tcgen05.ld, st, cp and shift: every shape against the tables of the PTX ISA, in kernels that use one instruction
// each.

#include <doctest/doctest.h>

#include "reference.hpp"
#include "tensor_kernel.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

struct Place {
    unsigned lane, column;
};
/// Lane (in the warp's quarter) and column of register r of thread t.
Place fragment(const std::string& shape, unsigned t, unsigned r)
{
    if (shape == "32x32b") {
        return {t, r};
    }
    if (shape == "16x64b") {
        // Threads 4i .. 4i+3: two neighbours of row i, then two of row i + 8
        const unsigned group = t / 4, within = t % 4;
        return {group + (within % 2 == 1 ? 8u : 0u), 2 * r + within / 2};
    }
    if (shape == "16x128b") {
        return {t / 4 + (r % 2 == 1 ? 8u : 0u), r / 2 * 4 + t % 4};
    }
    if (shape == "16x256b") {
        const unsigned pair = r / 2;
        return {t / 4 + (pair % 2 == 1 ? 8u : 0u), pair / 2 * 8 + t % 4 * 2 + r % 2};
    }
    return {t % 16, r};  // 16x32bx2, the first half
}
unsigned registers_of(const std::string& shape) { return shape == "16x128b" ? 2 : shape == "16x256b" ? 4 : 1; }
unsigned largest(const std::string& shape) { return shape == "16x128b" ? 64 : shape == "16x256b" ? 32 : 128; }

std::string registers(unsigned count)
{
    std::string text = "{%v0";
    for (unsigned i = 1; i < count; ++i) {
        text += fmt::format(", %v{}", i);
    }
    return text + "}";
}

/// The word that the tests store at a place: it encodes lane and column.
std::uint32_t tag(unsigned lane, unsigned column) { return lane << 16 | column; }

/// Fills columns 0 .. count-1 of all lanes with tags.
std::string fill(unsigned count)
{
    std::string text = "    shl.b32 %a2, %thread, 16;\n";
    for (unsigned c = 0; c < count; ++c) {
        text += fmt::format(
            "    or.b32 %a1, %a2, {0};\n    add.u32 %a0, %taddr, {0};\n    tcgen05.st.sync.aligned.32x32b.x1.b32 "
            "[%a0], {{%a1}};\n",
            c);
    }
    return text + "    tcgen05.wait::st.sync.aligned;\n";
}

/// Executes ld of one shape and returns its registers: [thread][register].
std::vector<std::uint32_t> run_load(const std::string& shape, unsigned number, unsigned lane_offset,
                                    const std::string& suffix, const std::string& extra, TensorKernel::Outcome& outcome)
{
    const unsigned count = registers_of(shape) * number;
    TensorKernel kernel;
    kernel.wait = false;
    kernel.dump_column = 0;
    kernel.dump_columns = 0;
    kernel.by_all_before = fill(256);
    std::string load = fmt::format(
        "{{\n    .reg .b32 %v<{0}>;\n    shl.b32 %a0, %warp, 21;\n    add.u32 %a0, %a0, {1};\n    add.u32 %a0, %taddr, "
        "%a0;\n"
        "    tcgen05.ld.sync.aligned.{2}.x{3}{4}.b32 {5}, [%a0]{6};\n    tcgen05.wait::ld.sync.aligned;\n"
        "    mul.wide.u32 %l0, %thread, {7};\n    add.u64 %l0, %out, %l0;\n",
        count, lane_offset << 16, shape, number, suffix, registers(count), extra, 4 * count);
    for (unsigned r = 0; r < count; ++r) {
        load += fmt::format("    st.global.b32 [%l0+{}], %v{};\n", 4 * r, r);
    }
    kernel.by_all_after = load + "}\n";
    PtxRun run(kernel.text());
    const std::uint64_t source = run.buffer(std::vector<std::uint32_t>(4));
    const std::uint64_t target = run.buffer(std::vector<std::uint32_t>(128 * count));
    outcome.result =
        run.launch("kernel", {.block = {128, 1, 1}, .dynamic_shared = 16}, source, std::uint32_t{16}, target);
    outcome.findings = run.report.findings();
    return run.read<std::uint32_t>(target, std::size_t{128} * count);
}

}  // namespace

TEST_CASE("ld: every shape and number")
{
    for (const std::string shape : {"32x32b", "16x64b", "16x128b", "16x256b"}) {
        for (unsigned number = 1; number <= largest(shape); number *= 2) {
            const unsigned offset = shape != "32x32b" && number % 3 == 1 ? 16 : 0;
            TensorKernel::Outcome outcome;
            const auto words = run_load(shape, number, offset, "", "", outcome);
            CAPTURE(shape);
            CAPTURE(number);
            CHECK(outcome.result.message == "");
            CHECK(outcome.findings.empty());
            const unsigned count = registers_of(shape) * number;
            unsigned wrong = 0;
            for (unsigned thread = 0; thread < 128; ++thread) {
                for (unsigned r = 0; r < count; ++r) {
                    const Place place = fragment(shape, thread % 32, r);
                    wrong += words[thread * count + r] != tag(thread / 32 * 32 + offset + place.lane, place.column);
                }
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("ld: two halves with a split offset, and packed 16-bit elements")
{
    TensorKernel::Outcome outcome;
    auto words = run_load("16x32bx2", 8, 16, "", ", 40", outcome);
    CHECK(outcome.findings.empty());
    unsigned wrong = 0;
    for (unsigned thread = 0; thread < 128; ++thread) {
        for (unsigned r = 0; r < 8; ++r) {
            const unsigned t = thread % 32;
            wrong += words[thread * 8 + r] != tag(thread / 32 * 32 + 16 + t % 16, r + (t < 16 ? 0u : 40u));
        }
    }
    CHECK(wrong == 0);
    for (const std::string shape : {"32x32b", "16x64b", "16x128b", "16x256b"}) {
        const unsigned count = registers_of(shape) * 4;
        words = run_load(shape, 4, 0, ".pack::16b", "", outcome);
        CHECK(outcome.findings.empty());
        wrong = 0;
        for (unsigned thread = 0; thread < 128; ++thread) {
            for (unsigned r = 0; r < count; ++r) {
                // Registers hold the low halves of two neighbouring columns.
                const unsigned column = 2 * fragment(shape, thread % 32, r).column;
                wrong += words[thread * count + r] != (column | (column + 1) << 16);
            }
        }
        CAPTURE(shape);
        CHECK(wrong == 0);
    }
}

TEST_CASE("st: every shape, plain and unpacked")
{
    for (const std::string shape : {"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"}) {
        for (const bool unpack : {false, true}) {
            const unsigned number = 4, count = registers_of(shape) * number, scale = unpack ? 2 : 1;
            const bool split = shape == "16x32bx2";
            const unsigned columns = (shape == "32x32b" || split ? 4
                                      : shape == "16x64b"        ? 8
                                      : shape == "16x128b"       ? 16
                                                                 : 32) *
                                     scale;
            TensorKernel kernel;
            kernel.wait = false;
            kernel.dump_columns = split ? 24 + columns : columns;
            std::string body = fill(kernel.dump_columns) +
                               fmt::format("{{\n    .reg .b32 %v<{}>;\n    shl.b32 %a2, %thread, 16;\n", count);
            for (unsigned r = 0; r < count; ++r) {
                body += fmt::format("    or.b32 %v{}, %a2, {};\n", r, 0x100 + r);
            }
            kernel.by_all_before =
                body + fmt::format(
                           "    tcgen05.st.sync.aligned.{}.x{}{}.b32 [%taddr]{}, {};\n    "
                           "tcgen05.wait::st.sync.aligned;\n}}\n",
                           shape, number, unpack ? ".unpack::16b" : "", split ? ", 24" : "", registers(count));
            const TensorKernel::Outcome outcome = kernel.run({});
            CAPTURE(shape);
            CAPTURE(unpack);
            CHECK(outcome.result.message == "");
            CHECK(outcome.findings.empty());
            std::vector<std::uint32_t> expected(128 * kernel.dump_columns);
            for (unsigned lane = 0; lane < 128; ++lane) {
                for (unsigned c = 0; c < kernel.dump_columns; ++c) {
                    expected[lane * kernel.dump_columns + c] = tag(lane, c);
                }
            }
            for (unsigned thread = 0; thread < 128; ++thread) {
                for (unsigned r = 0; r < count; ++r) {
                    const Place place = fragment(shape, thread % 32, r);
                    const unsigned base = split && thread % 32 >= 16 ? 24 : 0, value = thread << 16 | (0x100 + r);
                    std::uint32_t* word =
                        &expected[(thread / 32 * 32 + place.lane) * kernel.dump_columns + base + place.column * scale];
                    if (unpack) {
                        word[0] = value & 0xFFFF;
                        word[1] = value >> 16;
                    } else {
                        word[0] = value;
                    }
                }
            }
            CHECK(outcome.words == expected);
        }
    }
}

namespace {

struct CopyCase {
    std::string shape;
    unsigned rows, row_bytes;
    std::vector<std::vector<unsigned>> lanes;  ///< of each block of rows
    unsigned block;
};

}  // namespace

TEST_CASE("cp: every shape, from unswizzled and swizzled memory")
{
    const std::vector<CopyCase> cases{{"128x256b", 128, 32, {{0}}, 128},
                                      {"128x128b", 128, 16, {{0}}, 128},
                                      {"4x256b", 4, 32, {{0}, {32}, {64}, {96}}, 1},
                                      {"64x128b.warpx2::02_13", 64, 16, {{0, 64}, {32, 96}}, 32},
                                      {"64x128b.warpx2::01_23", 64, 16, {{0, 32}, {64, 96}}, 32},
                                      {"32x128b.warpx4", 32, 16, {{0, 32, 64, 96}}, 32}};
    Random random(7);
    for (const CopyCase& test : cases) {
        for (const Layout layout : {Layout::none, Layout::swizzle_32, Layout::swizzle_128}) {
            for (const unsigned group : {1u, 2u}) {
                const Matrix data = make_matrix(test.rows * group, test.row_bytes, [&] { return random() % 256; });
                const unsigned groups = (test.rows + 7) / 8;
                const MemoryLayout memory =
                    layout == Layout::none
                        ? MemoryLayout{layout, false, 128 * groups, 128}
                        : MemoryLayout{layout, false, 16, layout == Layout::swizzle_32 ? 256u : 1024u};
                std::vector<std::byte> image;
                for (unsigned cta = 0; cta < group; ++cta) {
                    std::vector<std::byte> part;
                    store(part, 0, memory, data, 1, cta * test.rows, test.rows);
                    part.resize(16384);
                    image.insert(image.end(), part.begin(), part.end());
                }
                TensorKernel kernel;
                kernel.cta_group = kernel.ctas = group;
                kernel.dump_column = 4;
                kernel.dump_columns = test.row_bytes / 4;
                kernel.by_all_before = fill(16);
                kernel.by_one =
                    TensorKernel::descriptor("%l0", memory.descriptor(), 0) +
                    fmt::format("    add.u32 %a0, %taddr, {:#x};\n    tcgen05.cp.cta_group::{}.{} [%a0], %l0;\n",
                                4 | (test.rows == 4 ? 5u << 16 : 0u), group, test.shape) +
                    kernel.commit();
                const TensorKernel::Outcome outcome = kernel.run(image);
                CAPTURE(test.shape);
                CAPTURE(static_cast<int>(layout));
                CAPTURE(group);
                CHECK(outcome.result.message == "");
                CHECK(outcome.findings.empty());
                for (const Finding& f : outcome.findings) {
                    MESSAGE(f.message);
                }
                std::vector<std::uint32_t> expected(128 * kernel.dump_columns * group);
                for (unsigned cta = 0; cta < group; ++cta) {
                    for (unsigned lane = 0; lane < 128; ++lane) {
                        for (unsigned c = 0; c < kernel.dump_columns; ++c) {
                            expected[(cta * 128 + lane) * kernel.dump_columns + c] = tag(lane, c + 4);
                        }
                    }
                    for (unsigned row = 0; row < test.rows; ++row) {
                        for (const unsigned first : test.lanes[row / test.block]) {
                            const unsigned lane = first + row % test.block + (test.rows == 4 ? 5 : 0);
                            for (unsigned byte = 0; byte < test.row_bytes; ++byte) {
                                std::uint32_t& word = expected[(cta * 128 + lane) * kernel.dump_columns + byte / 4];
                                word = (word & ~(0xFFu << (byte % 4 * 8))) | data.at(cta * test.rows + row, byte)
                                                                                 << (byte % 4 * 8);
                            }
                        }
                    }
                }
                CHECK(outcome.words == expected);
            }
        }
    }
}

TEST_CASE("cp: decompression of 4- and 6-bit elements to bytes")
{
    Random random(9);
    for (const unsigned bits : {4u, 6u}) {
        const Matrix codes = make_matrix(32, 16, [&] { return random() % (1u << bits); });
        std::vector<std::byte> image(512);
        for (unsigned row = 0; row < 32; ++row) {
            // 16 consecutive codes, low bits first, then padding up to 16 bytes.
            for (unsigned bit = 0; bit < 16 * bits; ++bit) {
                image[row * 16 + bit / 8] |=
                    static_cast<std::byte>((codes.at(row, bit / bits) >> (bit % bits) & 1) << (bit % 8));
            }
        }
        TensorKernel kernel;
        kernel.dump_columns = 4;
        kernel.by_one = TensorKernel::descriptor("%l0", MemoryLayout{Layout::none, false, 128, 128}.descriptor(), 0) +
                        fmt::format("    tcgen05.cp.cta_group::1.32x128b.warpx4.b8x16.{} [%taddr], %l0;\n",
                                    bits == 4 ? "b4x16_p64" : "b6x16_p32") +
                        kernel.commit();
        const TensorKernel::Outcome outcome = kernel.run(image);
        CHECK(outcome.result.message == "");
        CHECK(outcome.findings.empty());
        unsigned wrong = 0;
        for (unsigned lane = 0; lane < 128; ++lane) {
            for (unsigned i = 0; i < 16; ++i) {
                const std::uint32_t code = codes.at(lane % 32, i);
                wrong += (outcome.words[lane * 4 + i / 4] >> (i % 4 * 8) & 0xFF) != (bits == 4 ? code << 2 : code);
            }
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("shift: lane i gets the contents of lane i + 1, within one quarter")
{
    TensorKernel kernel;
    kernel.dump_columns = 16;
    kernel.by_all_before = fill(16);
    kernel.by_one =
        "    add.u32 %a0, %taddr, 0x400004;\n    tcgen05.shift.cta_group::1.down [%a0];\n" + kernel.commit();
    const TensorKernel::Outcome outcome = kernel.run({});
    CHECK(outcome.result.message == "");
    CHECK(outcome.findings.empty());
    unsigned wrong = 0;
    for (unsigned lane = 0; lane < 128; ++lane) {
        for (unsigned c = 0; c < 16; ++c) {
            const bool moved = lane >= 64 && lane < 95 && c >= 4 && c < 12;
            wrong += outcome.words[lane * 16 + c] != tag(moved ? lane + 1 : lane, c);
        }
    }
    CHECK(wrong == 0);
}
