// tcgen05.mma with block scaling, with 4- and 6-bit elements, with A in tensor memory and with a sparse A, against
// products in double.

#include <doctest/doctest.h>

#include "mma_case.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

const NumberFormat ue4m3{"ue4m3", 4, 3, 7, 8};

enum class Packing { bytes, padded, nibbles, halves, words };

/// The bytes of one row of codes in shared memory.
std::vector<std::uint32_t> pack(const std::vector<std::uint32_t>& codes, Packing packing, unsigned bits)
{
    std::vector<std::uint32_t> bytes;
    switch (packing) {
        case Packing::bytes: return codes;
        case Packing::halves:
        case Packing::words:
            for (const std::uint32_t code : codes) {
                for (unsigned byte = 0; byte < (packing == Packing::halves ? 2u : 4u); ++byte) {
                    bytes.push_back(code >> (8 * byte) & 0xFF);
                }
            }
            return bytes;
        case Packing::nibbles:
            for (std::size_t i = 0; i < codes.size(); i += 2) {
                bytes.push_back(codes[i] | codes[i + 1] << 4);
            }
            return bytes;
        case Packing::padded:
            for (std::size_t slot = 0; slot < codes.size(); slot += 16) {
                std::vector<std::uint32_t> sixteen(16);
                for (unsigned bit = 0; bit < 16 * bits; ++bit) {
                    sixteen[bit / 8] |= (codes[slot + bit / bits] >> (bit % bits) & 1) << (bit % 8);
                }
                bytes.insert(bytes.end(), sixteen.begin(), sixteen.end());
            }
            return bytes;
    }
    return bytes;
}

struct OperandCase {
    std::string kind;
    NumberFormat a, b;
    Packing packing_a = Packing::bytes, packing_b = Packing::bytes;
    bool a_mn_major = false, b_mn_major = false;
    unsigned m = 128, n = 64, group = 1;
    bool ws = false;
    unsigned scales = 0;  ///< per row
    std::string scale_modifier = "";
    bool scale_ue4m3 = false;
    unsigned sfa_id = 0, sfb_id = 0;
    bool a_in_tensor = false, shift = false;
    bool sparse = false;
    unsigned selector = 0;
    bool negate_a = false;
    Numerics numerics = Numerics::exact;
    bool break_replicas = false;
    std::optional<std::uint32_t> same_place = std::nullopt;  ///< twice in a quarter of the chunks, metadata 0b0000

    [[nodiscard]] bool four_bit() const { return kind.starts_with("mxf4"); }
    [[nodiscard]] unsigned dense_k() const { return kind == "f16" ? 16 : kind == "tf32" ? 8 : four_bit() ? 64 : 32; }
    [[nodiscard]] unsigned k() const { return sparse ? 2 * dense_k() : dense_k(); }
    [[nodiscard]] std::uint32_t descriptor() const
    {
        const unsigned a_code = kind == "f16" ? 0 : kind == "tf32" ? 2 : four_bit() ? 1 : a.code_f8f6f4;
        const unsigned b_code = kind == "f16" ? 0 : kind == "tf32" ? 2 : four_bit() ? 1 : b.code_f8f6f4;
        std::uint32_t bits = unsigned{sparse} << 2 | a_code << 7 | b_code << 10 | unsigned{negate_a} << 13 |
                             unsigned{a_mn_major} << 15 | unsigned{b_mn_major} << 16 | (n >> 3) << 17;
        if (scales == 0) {
            return bits | selector | 1u << 4 | (m >> 4) << 24;
        }
        return bits | sfb_id << 4 | unsigned{!scale_ue4m3} << 23 | (m >> 7) << 27 | sfa_id << 29;
    }
};

struct Chunk {  // a chunk of K of a sparse A: its 4 bits of metadata, and which elements are stored
    unsigned bits;
    std::vector<unsigned> places;
};

Chunk sample_chunk(const OperandCase& test, Random& random)
{
    if (test.kind == "tf32") {
        return random() % 2 == 0 ? Chunk{0b0100, {0}} : Chunk{0b1110, {1}};
    }
    const std::vector<std::pair<unsigned, unsigned>> pairs{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
    const auto [first, second] = pairs[random() % pairs.size()];
    if (test.four_bit()) {
        return {first | second << 2, {2 * first, 2 * first + 1, 2 * second, 2 * second + 1}};
    }
    return {first | second << 2, {first, second}};
}

void run_case(const OperandCase& test, std::size_t expected_findings = 0)
{
    Random random(3);
    const unsigned k = test.k(), rows_a = test.m / test.group, rows_b = test.n / test.group;
    const unsigned chunk_size = test.kind == "tf32" ? 2 : test.four_bit() ? 8 : 4, chunks = k / chunk_size;
    Matrix a = make_matrix(test.m, k, [&] { return test.a.sample(random); });
    const Matrix b = make_matrix(test.n, k, [&] { return test.b.sample(random); });
    std::vector<Chunk> pattern;
    if (test.sparse) {
        for (unsigned row = 0; row < test.m; ++row) {
            for (unsigned chunk = 0; chunk < chunks; ++chunk) {
                pattern.push_back(sample_chunk(test, random));
                if (test.same_place && random() % 4 == 0) {
                    pattern.back() = {0b0000, {0, 1}};
                    a.at(row, chunk * chunk_size) = a.at(row, chunk * chunk_size + 1) = *test.same_place;
                }
                for (unsigned i = 0; i < chunk_size; ++i) {
                    if (std::ranges::find(pattern.back().places, i) == pattern.back().places.end()) {
                        a.at(row, chunk * chunk_size + i) = 0;
                    }
                }
            }
        }
    }
    const auto scale_code = [&] { return test.scale_ue4m3 ? ue4m3.sample(random) & 0x7F : 126u + random() % 3; };
    const auto scale_value = [&](std::uint32_t code) {
        return test.scale_ue4m3 ? ue4m3.value(code) : std::ldexp(1.0, static_cast<int>(code) - 127);
    };
    const unsigned per_row = std::max(1u, test.scales);
    const Matrix scale_a = make_matrix(test.m, per_row, scale_code), scale_b = make_matrix(test.n, per_row, scale_code);

    const MemoryLayout layout{Layout::swizzle_128, false, 16, 1024}, mn_layout{Layout::swizzle_128, true, 4096, 1024};
    const unsigned a_base = 0, b_base = 16384, sfa_base = 49152, sfb_base = 50176, meta_base = 51200;
    std::vector<std::byte> image;
    for (unsigned cta = 0; cta < test.group; ++cta) {
        std::vector<std::byte> part(55296);
        const auto store_rows = [&](unsigned base, const Matrix& matrix, unsigned first, unsigned rows, Packing packing,
                                    unsigned bits, bool compress) {
            Matrix bytes{rows, 0, {}};
            for (unsigned row = 0; row < rows; ++row) {
                std::vector<std::uint32_t> codes;
                for (unsigned depth = 0; depth < k; ++depth) {
                    const auto* chunk = compress ? &pattern[(first + row) * chunks + depth / chunk_size] : nullptr;
                    if (chunk == nullptr ||
                        std::ranges::find(chunk->places, depth % chunk_size) != chunk->places.end()) {
                        codes.push_back(matrix.at(first + row, depth));
                    }
                }
                const auto packed = pack(codes, packing, bits);
                bytes.k = packed.size();
                bytes.codes.insert(bytes.codes.end(), packed.begin(), packed.end());
            }
            store(part, base, layout, bytes, 1, 0, rows);
        };
        // Packed along M or N: the rows of 16 elements of one K.
        const auto store_columns = [&](unsigned base, const Matrix& matrix, unsigned first, unsigned rows,
                                       Packing packing, unsigned bits) {
            Matrix bytes{rows, k, std::vector<std::uint32_t>(std::size_t{rows} * k)};
            for (unsigned depth = 0; depth < k; ++depth) {
                std::vector<std::uint32_t> codes;
                for (unsigned row = 0; row < rows; ++row) {
                    codes.push_back(matrix.at(first + row, depth));
                }
                const auto packed = pack(codes, packing, bits);
                for (unsigned row = 0; row < rows; ++row) {
                    bytes.at(row, depth) = packed[row];
                }
            }
            store(part, base, mn_layout, bytes, 1, 0, rows);
        };
        if (test.a_mn_major) {
            store_columns(a_base, a, cta * rows_a, rows_a, test.packing_a, test.a.bits);
        } else {
            store_rows(a_base, a, cta * rows_a, rows_a, test.packing_a, test.a.bits, test.sparse);
        }
        if (test.group == 2 && test.m == 128 && test.a_in_tensor) {
            FAIL("not a case of this test");
        }
        if (test.b_mn_major) {
            store_columns(b_base, b, cta * rows_b, rows_b, test.packing_b, test.b.bits);
        } else {
            store_rows(b_base, b, cta * rows_b, rows_b, test.packing_b, test.b.bits, false);
        }
        // Scale factors of this CTA's rows and of all columns, in blocks of 512 bytes.
        for (unsigned row = 0; test.scales != 0 && row < rows_a; ++row) {
            for (unsigned i = 0; i < test.scales; ++i) {
                part[sfa_base + row % 32 * 16 + row / 32 * 4 + test.sfa_id + i] =
                    static_cast<std::byte>(scale_a.at(cta * rows_a + row, i));
            }
        }
        for (unsigned column = 0; test.scales != 0 && column < test.n; ++column) {
            for (unsigned i = 0; i < test.scales; ++i) {
                const unsigned place = column / 128 * 512 + column % 32 * 16 + column % 128 / 32 * 4 + test.sfb_id + i;
                part[sfb_base + place] = static_cast<std::byte>(scale_b.at(column, i));
            }
        }
        // Metadata: four words per lane.
        for (unsigned row = 0; test.sparse && row < rows_a; ++row) {
            for (unsigned chunk = 0; chunk < chunks; ++chunk) {
                const unsigned bits = pattern[(cta * rows_a + row) * chunks + chunk].bits;
                unsigned lane = 0, bit = 0;
                const bool narrow = test.kind == "f16" || test.kind == "tf32";
                const auto lane_of_row = [&](unsigned r) {
                    return test.m == 64 && !test.ws ? r / 16 * 32 + r % 16 : r;
                };
                if (narrow) {
                    // Rows i and i + 8 of 16 share lanes i (first half of K) and i + 8 (second half).
                    lane = lane_of_row(row / 16 * 16) + row % 8 + (chunk >= chunks / 2 ? 8 : 0);
                    bit = 32 * test.selector + (row % 16 >= 8 ? 16 : 0) + chunk % (chunks / 2) * 4;
                } else {
                    lane = lane_of_row(row);
                    bit = 4 * chunk;
                }
                part[meta_base + lane * 16 + bit / 8] |= static_cast<std::byte>(bits << (bit % 8));
            }
        }
        image.insert(image.end(), part.begin(), part.end());
    }

    const unsigned d_column = 0, a_column = 256, sfa_column = 272, sfb_column = 280, meta_column = 292;
    TensorKernel kernel;
    kernel.cta_group = kernel.ctas = test.group;
    kernel.dump_column = d_column;
    kernel.dump_columns = test.ws && test.m == 64 ? test.n / 2 : test.n;
    if (test.m == 64 && !test.ws) {  // the dump takes all lanes, the MMA writes half of them
        for (unsigned column = 0; column < test.n; ++column) {
            kernel.by_all_before += fmt::format(
                "    add.u32 %a0, %taddr, {};\n    tcgen05.st.sync.aligned.32x32b.x1.b32 [%a0], {{%thread}};\n",
                column);
        }
        kernel.by_all_before += "    tcgen05.wait::st.sync.aligned;\n    tcgen05.fence::before_thread_sync;\n";
    }
    const std::string group = fmt::format("cta_group::{}", test.group);
    const std::uint64_t plain = MemoryLayout{Layout::none, false, 128, 128}.descriptor();
    std::string& code = kernel.by_one;
    const auto copy = [&](const std::string& shape, unsigned column, std::uint64_t constant, unsigned base) {
        code += TensorKernel::descriptor("%l0", constant, base) +
                fmt::format("    add.u32 %a0, %taddr, {};\n    tcgen05.cp.{}.{} [%a0], %l0;\n", column, group, shape);
    };
    if (test.a_in_tensor) {
        const std::string format =
            test.packing_a == Packing::padded ? (test.a.bits == 4 ? ".b8x16.b4x16_p64" : ".b8x16.b6x16_p32") : "";
        copy("128x256b" + format, a_column, layout.descriptor(), a_base);
    }
    if (test.scales != 0) {
        copy("32x128b.warpx4", sfa_column, plain, sfa_base);
        copy("32x128b.warpx4", sfb_column, plain, sfb_base);
        copy("32x128b.warpx4", sfb_column + 4, plain, sfb_base + 512);
    }
    if (test.sparse) {
        copy("128x128b", meta_column, MemoryLayout{Layout::none, false, 2048, 128}.descriptor(), meta_base);
    }
    if (test.break_replicas) {
        copy("128x128b", sfa_column, layout.descriptor(), a_base);
    }
    code += TensorKernel::descriptor("%l1", (test.a_mn_major ? mn_layout : layout).descriptor(), a_base) +
            TensorKernel::descriptor("%l2", (test.b_mn_major ? mn_layout : layout).descriptor(), b_base) +
            fmt::format(
                "    mov.b32 %a1, {:#x};\n    add.u32 %a2, %taddr, {};\n    add.u32 %a3, %taddr, {};\n    add.u32 %a4, "
                "%taddr, {};\n"
                "    add.u32 %a5, %taddr, {};\n    setp.ne.u32 %p0, 0, 0;\n",
                test.descriptor(), a_column, sfa_column, sfb_column, meta_column);
    code +=
        fmt::format("    tcgen05.mma{}{}.{}.kind::{}{}{}{} [%taddr], {}, %l2, {}%a1, {}%p0;\n", test.ws ? ".ws" : "",
                    test.sparse ? ".sp" : "", group, test.kind, test.scales != 0 ? ".block_scale" : "",
                    test.scale_modifier, test.shift ? ".ashift" : "", test.a_in_tensor ? "[%a2]" : "%l1",
                    test.sparse ? "[%a5], " : "", test.scales != 0 ? "[%a3], [%a4], " : "");
    code += kernel.commit();
    Options options;
    options.numerics = test.numerics;
    const TensorKernel::Outcome outcome = kernel.run(image, options);

    CAPTURE(test.kind);
    CAPTURE(test.a.name);
    CAPTURE(test.b.name);
    CAPTURE(static_cast<int>(test.numerics));
    CHECK(outcome.result.message == "");
    CHECK(outcome.findings.size() == expected_findings);
    if (outcome.findings.size() > expected_findings) {
        MESSAGE(outcome.findings.front().message);
    }
    if (expected_findings != 0) {  // then the result is undefined
        return;
    }
    unsigned wrong = 0;
    std::string first;
    for (unsigned row = 0; row < test.m; ++row) {
        const unsigned source = test.shift && row % 128 != 127 ? row + 1 : row;
        for (unsigned column = 0; column < test.n; ++column) {
            double expected = 0;
            for (unsigned depth = 0; depth < k; ++depth) {
                const unsigned block = depth / (k / per_row);
                const double scale =
                    test.scales == 0 ? 1 : scale_value(scale_a.at(row, block)) * scale_value(scale_b.at(column, block));
                expected += test.a.value(a.at(source, depth)) * test.b.value(b.at(column, depth)) * scale;
            }
            expected = test.negate_a ? -expected : expected;
            const DPlace place = d_place(test.group, test.ws, test.m, test.n, row, column);
            const double got =
                float_value(outcome.words[(place.cta * 128 + place.lane) * kernel.dump_columns + place.column]);
            if (got != expected) {
                ++wrong;
                if (first.empty()) {
                    first = fmt::format("row {} column {}: {} instead of {}", row, column, got, expected);
                }
            }
        }
    }
    CAPTURE(first);
    CHECK(wrong == 0);
}

void run_both(OperandCase test)
{
    for (const Numerics numerics : {Numerics::exact, Numerics::fast}) {
        test.numerics = numerics;
        run_case(test);
    }
}

}  // namespace

TEST_CASE("mma: 4- and 6-bit elements in shared memory")
{
    for (const NumberFormat& a : {e2m3, e3m2, e2m1, e4m3}) {
        for (const NumberFormat& b : {e2m3, e3m2, e2m1, e5m2}) {
            run_both({.kind = "f8f6f4",
                      .a = a,
                      .b = b,
                      .packing_a = a.bits == 8 ? Packing::bytes : Packing::padded,
                      .packing_b = b.bits == 8 ? Packing::bytes : Packing::padded,
                      .n = 32});
        }
    }
}

TEST_CASE("mma: 4- and 6-bit elements in shared memory, M- and N-major")
{
    for (const NumberFormat& format : {e2m3, e3m2, e2m1}) {
        for (const auto& [a_mn_major, b_mn_major] : {std::pair{true, false}, {false, true}, {true, true}}) {
            OperandCase test{.kind = "f8f6f4",
                             .a = format,
                             .b = format,
                             .packing_a = Packing::padded,
                             .packing_b = Packing::padded,
                             .a_mn_major = a_mn_major,
                             .b_mn_major = b_mn_major};
            run_both(test);
            test.kind = "mxf8f6f4";
            test.scales = 1;
            run_both(test);
        }
        run_both({.kind = "f8f6f4", .a = e4m3, .b = format, .packing_b = Packing::padded, .b_mn_major = true, .m = 64});
        run_both({.kind = "f8f6f4",
                  .a = format,
                  .b = e5m2,
                  .packing_a = Packing::padded,
                  .a_mn_major = true,
                  .m = 256,
                  .group = 2});
    }
}

TEST_CASE("mma: A in tensor memory")
{
    run_both({.kind = "f16",
              .a = f16,
              .b = f16,
              .packing_a = Packing::halves,
              .packing_b = Packing::halves,
              .a_in_tensor = true});
    run_both({.kind = "tf32",
              .a = tf32,
              .b = tf32,
              .packing_a = Packing::words,
              .packing_b = Packing::words,
              .a_in_tensor = true});
    run_both({.kind = "f8f6f4", .a = e5m2, .b = e4m3, .a_in_tensor = true});
    for (const NumberFormat& a : {e2m3, e3m2, e2m1}) {
        run_both({.kind = "f8f6f4", .a = a, .b = e4m3, .packing_a = Packing::padded, .a_in_tensor = true});
    }
    run_both({.kind = "f16",
              .a = f16,
              .b = f16,
              .packing_a = Packing::halves,
              .packing_b = Packing::halves,
              .m = 256,
              .group = 2,
              .a_in_tensor = true});
    run_both({.kind = "f16",
              .a = f16,
              .b = f16,
              .packing_a = Packing::halves,
              .packing_b = Packing::halves,
              .a_in_tensor = true,
              .shift = true});
}

TEST_CASE("mma: mxf8f6f4")
{
    run_both({.kind = "mxf8f6f4", .a = e4m3, .b = e4m3, .scales = 1});
    for (unsigned id = 0; id < 4; ++id) {
        run_both({.kind = "mxf8f6f4",
                  .a = e5m2,
                  .b = e4m3,
                  .n = 256,
                  .scales = 1,
                  .scale_modifier = ".scale_vec::1X",
                  .sfa_id = id,
                  .sfb_id = 3 - id});
    }
    run_both({.kind = "mxf8f6f4",
              .a = e2m1,
              .b = e3m2,
              .packing_a = Packing::padded,
              .packing_b = Packing::padded,
              .n = 40,
              .scales = 1,
              .scale_modifier = ".block32"});
    run_both({.kind = "mxf8f6f4", .a = e4m3, .b = e4m3, .m = 256, .n = 128, .group = 2, .scales = 1, .negate_a = true});
    run_both({.kind = "mxf8f6f4", .a = e4m3, .b = e4m3, .scales = 1, .a_in_tensor = true});
}

TEST_CASE("mma: mxf4 and mxf4nvf4")
{
    const OperandCase base{.kind = "mxf4",
                           .a = e2m1,
                           .b = e2m1,
                           .packing_a = Packing::nibbles,
                           .packing_b = Packing::nibbles,
                           .scales = 2};
    OperandCase test = base;
    run_both(test);
    test.sfa_id = 2;
    test.scale_modifier = ".block32";
    run_both(test);
    test.sfb_id = 2;
    test.scale_modifier = ".scale_vec::2X";
    test.n = 256;
    run_both(test);
    test = base;
    test.m = 256;
    test.group = 2;
    run_both(test);
    test = base;
    test.a_in_tensor = true;
    test.negate_a = true;
    run_both(test);
    test = base;
    test.kind = "mxf4nvf4";
    test.scale_modifier = ".scale_vec::2X";
    run_both(test);
    test.scales = 4;
    test.scale_modifier = ".block16";
    run_both(test);
    test.scale_ue4m3 = true;
    test.scale_modifier = ".scale_vec::4X";
    run_both(test);
    test.n = 200;
    run_both(test);
}

TEST_CASE("mma: sparse A")
{
    for (unsigned selector = 0; selector < 4; ++selector) {
        run_both({.kind = "f16",
                  .a = f16,
                  .b = f16,
                  .packing_a = Packing::halves,
                  .packing_b = Packing::halves,
                  .n = 32,
                  .sparse = true,
                  .selector = selector});
    }
    run_both({.kind = "f16",
              .a = f16,
              .b = f16,
              .packing_a = Packing::halves,
              .packing_b = Packing::halves,
              .m = 64,
              .n = 32,
              .sparse = true});
    run_both({.kind = "f16",
              .a = f16,
              .b = f16,
              .packing_a = Packing::halves,
              .packing_b = Packing::halves,
              .m = 256,
              .n = 32,
              .group = 2,
              .sparse = true});
    run_both({.kind = "f16",
              .a = f16,
              .b = f16,
              .packing_a = Packing::halves,
              .packing_b = Packing::halves,
              .sparse = true,
              .negate_a = true});
    run_both({.kind = "f16",
              .a = f16,
              .b = f16,
              .packing_a = Packing::halves,
              .packing_b = Packing::halves,
              .a_in_tensor = true,
              .sparse = true});
    run_both({.kind = "tf32",
              .a = tf32,
              .b = tf32,
              .packing_a = Packing::words,
              .packing_b = Packing::words,
              .sparse = true,
              .selector = 1});
    run_both({.kind = "f8f6f4", .a = e4m3, .b = e5m2, .sparse = true});
    run_both({.kind = "mxf8f6f4", .a = e4m3, .b = e4m3, .scales = 1, .sparse = true});
    run_both({.kind = "mxf4",
              .a = e2m1,
              .b = e2m1,
              .packing_a = Packing::nibbles,
              .packing_b = Packing::nibbles,
              .scales = 2,
              .sparse = true});
    run_both({.kind = "f16",
              .a = f16,
              .b = f16,
              .packing_a = Packing::halves,
              .packing_b = Packing::halves,
              .n = 128,
              .ws = true,
              .sparse = true});
}

TEST_CASE("mma: metadata that selects one element twice, for zeros and for other values")
{
    OperandCase test{.kind = "f16",
                     .a = f16,
                     .b = f16,
                     .packing_a = Packing::halves,
                     .packing_b = Packing::halves,
                     .sparse = true,
                     .same_place = 0};
    run_both(test);
    test.same_place = 0x3C00;  // 1
    run_case(test, 1);
    OperandCase bytes{.kind = "f8f6f4", .a = e4m3, .b = e4m3, .sparse = true, .same_place = 0};
    run_both(bytes);
    bytes.same_place = 0x38;  // 1
    run_case(bytes, 1);
}

TEST_CASE("mma: scale factors missing from some partitions of the lanes")
{
    run_case({.kind = "mxf8f6f4", .a = e4m3, .b = e4m3, .scales = 1, .break_replicas = true}, 1);
}
