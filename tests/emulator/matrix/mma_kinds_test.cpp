// mma.sync and mma.sp.sync with .kind, of compute capability 12.x, against their definition in f64; which forms exist, as decided by
// ptxas 13.0; and the checks.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "run_ptx.hpp"

namespace {

using namespace tessera::emulator;
using test::PtxRun;

constexpr unsigned m = 16, n = 8;
constexpr std::size_t lane_words = 16;

/// The words of a warp. Lane l has words 16 * l on: 0-3 of A, 4-7 of B, 8-11 of C, 12 metadata, 13 and 14 scale factors.
using Words = std::vector<std::uint32_t>;

// ---- the formats ----

struct Element {
    const char* name;
    int exponent_bits, significand_bits, bias;
    unsigned shift;  ///< in an 8-bit container
};
constexpr std::array<Element, 5> elements{
    {{"e4m3", 4, 3, 7, 0}, {"e5m2", 5, 2, 15, 0}, {"e2m3", 2, 3, 1, 0}, {"e3m2", 3, 2, 3, 0}, {"e2m1", 2, 1, 1, 2}}};
constexpr const Element& e2m1 = elements[4];

double value_of(const Element& element, unsigned code)
{
    const unsigned fraction = code & ((1U << element.significand_bits) - 1U);
    const auto exponent = static_cast<int>(code >> element.significand_bits & ((1U << element.exponent_bits) - 1U));
    const double magnitude = std::ldexp((exponent == 0 ? 0.0 : std::ldexp(1.0, element.significand_bits)) + fraction,
                                        std::max(exponent, 1) - element.bias - element.significand_bits);
    return code >> (element.significand_bits + element.exponent_bits) != 0 ? -magnitude : magnitude;
}

/// From 0.5 on, up to 7.5: their products can be added exactly.
unsigned random_code(const Element& element, std::mt19937_64& engine)
{
    const auto exponent = static_cast<unsigned>(element.bias - 1) + static_cast<unsigned>(engine() % 3);
    const unsigned sign = static_cast<unsigned>(engine() % 2) << (element.significand_bits + element.exponent_bits);
    return sign | exponent << element.significand_bits |
           static_cast<unsigned>(engine() % (1U << element.significand_bits));
}

// ---- one instruction ----

struct Form {
    std::string kind;  ///< with its qualifiers: "kind::mxf4.block_scale"
    const Element *a, *b;
    bool sparse = false;
    bool half = false;
    unsigned scales = 0;
    bool ue4m3 = false;
    unsigned byte_a = 0, thread_a = 0, byte_b = 0, thread_b = 0;

    [[nodiscard]] bool packed() const { return kind.find("mxf4") != std::string::npos; }
    [[nodiscard]] unsigned k() const { return (packed() ? 64U : 32U) * (sparse ? 2 : 1); }
    [[nodiscard]] std::string name() const
    {
        const std::string sum = half ? "f16" : "f32";
        return std::string("mma") + (sparse ? ".sp::ordered_metadata" : "") + ".sync.aligned.m16n8k" +
               std::to_string(k()) + ".row.col." + kind + "." + sum + "." + a->name + "." + b->name + "." + sum +
               (scales == 0 ? ""
                : ue4m3     ? ".ue4m3"
                            : ".ue8m0");
    }
    [[nodiscard]] std::string text(const std::string& selector_registers = "") const
    {
        const auto list = [](unsigned first, unsigned count) {
            std::string names;
            for (unsigned i = 0; i < count; ++i) {
                names += (i == 0 ? "%r" : ", %r") + std::to_string(first + i);
            }
            return "{" + names + "}";
        };
        const auto pair = [](unsigned byte, unsigned thread) {
            return "{" + std::to_string(byte) + ", " + std::to_string(thread) + "}";
        };
        const unsigned sums = half ? 2 : 4;
        std::string text =
            name() + " " + list(8, sums) + ", " + list(0, 4) + ", " + list(4, sparse ? 4 : 2) + ", " + list(8, sums);
        text += sparse ? ", %r12, 0" : "";
        if (scales != 0) {
            text += ", %r13, " + (selector_registers.empty() ? pair(byte_a, thread_a) : selector_registers) +
                    ", %r14, " + pair(byte_b, thread_b);
        }
        return text + ";\n";
    }
};

std::string kernel(const std::string& body, const std::string& target)
{
    std::string text =
        ".version 9.0\n.target " + target +
        "\n.address_size 64\n.visible .entry k(.param .u64 p_words, .param .u64 p_out)\n{\n"
        ".reg .b64 %in, %out, %t;\n.reg .b32 %me, %r<20>;\n.reg .b16 %h<4>;\n.reg .pred %p;\n.local .b32 nothing;\n"
        "ld.param.u64 %in, [p_words];\nld.param.u64 %out, [p_out];\nmov.u32 %me, %laneid;\n"
        "mul.wide.u32 %t, %me, 64;\nadd.u64 %in, %in, %t;\nmul.wide.u32 %t, %me, 16;\nadd.u64 %out, %out, %t;\n";
    for (unsigned i = 0; i < 15; ++i) {
        text += "ld.global.b32 %r" + std::to_string(i) + ", [%in+" + std::to_string(4 * i) + "];\n";
    }
    text += body;
    for (unsigned i = 0; i < 4; ++i) {
        text += "st.global.b32 [%out+" + std::to_string(4 * i) + "], %r" + std::to_string(8 + i) + ";\n";
    }
    return text + "ret;\n}\n";
}

struct Device {
    const char *key, *target;
};
constexpr std::array<Device, 2> devices{{{"rtx5090", "sm_120a"}, {"gb10", "sm_121a"}}};

// ---- fragments, as the figures of PTX ISA 9.7.14 show them ----

using Matrix = std::vector<unsigned>;  ///< codes, row by row

/// Puts `code` at element `index` of a register of elements.
void put(std::uint32_t& word, const Form& form, const Element& element, unsigned index, unsigned code)
{
    word |= form.packed() ? code << (4 * index) : code << (element.shift + 8 * index);
}

/// `a` has the stored elements of a row: all, or half of K.
Words make_fragments(const Form& form, const Matrix& a, const Matrix& b)
{
    Words words(32 * lane_words);
    const unsigned in_word = form.packed() ? 8 : 4, stored = form.k() / (form.sparse ? 2 : 1);
    for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned group = lane / 4, thread = lane % 4;
        for (unsigned i = 0; i < in_word; ++i) {
            for (unsigned part = 0; part < 4; ++part) {
                const unsigned column = in_word * thread + i + 4 * in_word * (part / 2);
                put(words[lane * lane_words + part], form, *form.a, i, a[(group + 8 * (part % 2)) * stored + column]);
            }
            for (unsigned part = 0; part < form.k() / (4 * in_word); ++part) {
                put(words[lane * lane_words + 4 + part], form, *form.b, i,
                    b[group * form.k() + in_word * thread + i + 4 * in_word * part]);
            }
        }
    }
    return words;
}

struct Product {
    Words words;
    std::vector<double> sums;  ///< exact, (m, n)
};

Product random_product(const Form& form, std::mt19937_64& engine)
{
    const unsigned k = form.k(), stored = k / (form.sparse ? 2 : 1);
    Matrix a(m * stored), b(n * k);
    for (unsigned& code : a) {
        code = random_code(*form.a, engine);
    }
    for (unsigned& code : b) {
        code = random_code(*form.b, engine);
    }
    if (form.half) {  // sums of few bits: one element of each row
        for (unsigned i = 0; i < a.size(); ++i) {
            a[i] = i % stored == 11 * (i / stored) % stored ? a[i] : 0;
        }
    }
    Product product{make_fragments(form, a, b), std::vector<double>(m * n)};
    for (std::uint32_t& word : product.words) {  // padding of containers
        const auto padding = static_cast<std::uint32_t>(engine());
        const std::size_t at = static_cast<std::size_t>(&word - product.words.data()) % lane_words;
        if (!form.packed() && at < 8) {
            const Element& element = at < 4 ? *form.a : *form.b;
            const unsigned bits = 1U + static_cast<unsigned>(element.exponent_bits + element.significand_bits);
            word |= padding & ~((((1U << bits) - 1U) << element.shift) * 0x0101'0101U);
        }
    }
    const auto word = [&](unsigned lane, unsigned i) -> std::uint32_t& { return product.words[lane * lane_words + i]; };

    // Where the stored elements of A are: two of four, or two pairs of eight.
    std::vector<double> dense(m * k);
    for (unsigned row = 0; row < m; ++row) {
        if (!form.sparse) {
            for (unsigned i = 0; i < k; ++i) {
                dense[row * k + i] = value_of(*form.a, a[row * k + i]);
            }
            continue;
        }
        const unsigned run = form.packed() ? 2 : 1;
        for (unsigned chunk = 0; chunk < 16; ++chunk) {
            const auto first = static_cast<unsigned>(engine() % 3);
            const unsigned second = first + 1 + static_cast<unsigned>(engine() % (3 - first));
            word(4 * (row % 8) + 2 * (chunk / 8) + row / 8, 12) |= (first | second << 2) << (4 * (chunk % 8));
            for (unsigned i = 0; i < 2 * run; ++i) {
                const unsigned place = (i < run ? first : second) * run + i % run;
                dense[row * k + chunk * 4 * run + place] = value_of(*form.a, a[row * stored + chunk * 2 * run + i]);
            }
        }
    }

    // Scale factors. The bytes that do not count are NaN.
    std::vector<double> a_scales(m * std::max(form.scales, 1U), 1), b_scales(n * std::max(form.scales, 1U), 1);
    const auto scale = [&](std::uint32_t& to, unsigned byte, double& value) {
        const auto power = static_cast<int>(engine() % 3) - 1;
        const unsigned eighths = form.ue4m3 ? static_cast<unsigned>(engine() % 8) : 0;
        value = std::ldexp(1 + eighths / 8.0, power);
        const auto code = static_cast<std::uint32_t>(form.ue4m3 ? (7 + power) << 3 : 127 + power) | eighths;
        to = (to & ~(0xFFU << (8 * byte))) | code << (8 * byte);
    };
    for (unsigned lane = 0; lane < 32; ++lane) {
        word(lane, 13) = word(lane, 14) = 0xFFFF'FFFF;
    }
    for (unsigned i = 0; i < form.scales; ++i) {
        for (unsigned row = 0; row < m; ++row) {
            scale(word(4 * (row % 8) + 2 * form.thread_a + row / 8, 13), form.byte_a + i,
                  a_scales[row * form.scales + i]);
        }
        for (unsigned column = 0; column < n; ++column) {
            scale(word(4 * column + form.thread_b, 14), form.byte_b + i, b_scales[column * form.scales + i]);
        }
    }

    for (unsigned row = 0; row < m; ++row) {
        for (unsigned column = 0; column < n; ++column) {
            const unsigned lane = 4 * (row % 8) + column / 2, part = 2 * (row / 8) + column % 2;
            const unsigned start = (row + column) % 3;
            double sum = start;
            for (unsigned i = 0; i < k; ++i) {
                const unsigned block = form.scales == 0 ? 0 : i * form.scales / k, per_row = std::max(form.scales, 1U);
                sum += dense[row * k + i] * a_scales[row * per_row + block] * value_of(*form.b, b[column * k + i]) *
                       b_scales[column * per_row + block];
            }
            product.sums[row * n + column] = sum;
            constexpr std::array<std::uint32_t, 3> f16{0, 0x3C00, 0x4000};
            word(lane, 8 + (form.half ? part / 2 : part)) |=
                form.half ? f16[start] << (16 * (part % 2)) : std::bit_cast<std::uint32_t>(static_cast<float>(start));
        }
    }
    return product;
}

double f16_value(std::uint32_t bits)
{
    const auto exponent = static_cast<int>(bits >> 10 & 0x1FU);
    const double magnitude =
        std::ldexp((exponent == 0 ? 0 : 1024) + static_cast<int>(bits & 0x3FFU), std::max(exponent, 1) - 25);
    return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

/// Number of wrong sums; all are, if something was reported.
unsigned wrong_sums(const Form& form, const Device& device, Numerics numerics, std::mt19937_64& engine,
                    const std::string& before = "", const std::string& selectors = "")
{
    const Product product = random_product(form, engine);
    PtxRun run(kernel(before + form.text(selectors), device.target), device.key);
    INFO(run.module().find_kernel("k")->load_error);
    run.options.numerics = numerics;
    const std::uint64_t in = run.buffer(product.words), out = run.buffer(Words(32 * 4));
    if (run.launch("k", {}, in, out).code != 0 || !run.report.text().empty()) {
        MESSAGE(run.report.text());
        return m * n;
    }
    const Words found = run.read<std::uint32_t>(out, 32 * 4);
    unsigned wrong = 0;
    for (unsigned row = 0; row < m; ++row) {
        for (unsigned column = 0; column < n; ++column) {
            const unsigned lane = 4 * (row % 8) + column / 2, part = 2 * (row / 8) + column % 2;
            const std::uint32_t word = found[lane * 4 + (form.half ? part / 2 : part)];
            const double value = form.half ? f16_value(word >> (16 * (part % 2)) & 0xFFFFU)
                                           : static_cast<double>(std::bit_cast<float>(word));
            wrong += value == product.sums[row * n + column] ? 0U : 1U;
        }
    }
    return wrong;
}

/// Every kind, pair of types and number of scale factors, dense or sparse.
std::vector<Form> all_forms(bool sparse)
{
    std::vector<Form> forms;
    for (const Element& a : elements) {
        for (const Element& b : elements) {
            forms.push_back({.kind = "kind::f8f6f4", .a = &a, .b = &b, .sparse = sparse});
            forms.push_back({.kind = "kind::f8f6f4", .a = &a, .b = &b, .sparse = sparse, .half = true});
            forms.push_back(
                {.kind = "kind::mxf8f6f4.block_scale.scale_vec::1X", .a = &a, .b = &b, .sparse = sparse, .scales = 1});
        }
    }
    const auto packed = [&](const char* kind, unsigned scales, bool ue4m3) {
        forms.push_back({.kind = kind, .a = &e2m1, .b = &e2m1, .sparse = sparse, .scales = scales, .ue4m3 = ue4m3});
    };
    packed("kind::mxf4.block_scale", 2, false);
    packed("kind::mxf4.block_scale.scale_vec::2X", 2, false);
    packed("kind::mxf4nvf4.block_scale.scale_vec::2X", 2, false);
    packed("kind::mxf4nvf4.block_scale.scale_vec::4X", 4, true);
    return forms;
}

/// Why the instruction is refused, or nothing.
std::string refusal(const std::string& instruction, const char* device = "rtx5090", const char* target = "sm_120a")
{
    return PtxRun(kernel(instruction, target), device).module().find_kernel("k")->load_error;
}

std::string replaced(std::string text, std::string_view from, std::string_view to)
{
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

const Form mixed{.kind = "kind::f8f6f4", .a = &elements[2], .b = &elements[4]};
const Form mxf8{.kind = "kind::mxf8f6f4.block_scale.scale_vec::1X", .a = &elements[0], .b = &elements[3], .scales = 1};
const Form mxf4{.kind = "kind::mxf4.block_scale.scale_vec::2X", .a = &e2m1, .b = &e2m1, .scales = 2};
const Form nvf4{.kind = "kind::mxf4nvf4.block_scale.scale_vec::4X", .a = &e2m1, .b = &e2m1, .scales = 4, .ue4m3 = true};

Form sparse(Form form)
{
    form.sparse = true;
    return form;
}

}  // namespace

TEST_CASE("every form of mma with .kind gives the exact sums")
{
    std::mt19937_64 engine(41);
    for (const Device& device : devices) {
        for (const bool is_sparse : {false, true}) {
            for (const Form& form : all_forms(is_sparse)) {
                CAPTURE(device.key);
                CAPTURE(form.name());
                CHECK(wrong_sums(form, device, Numerics::exact, engine) == 0);
                CHECK(wrong_sums(form, device, Numerics::fast, engine) == 0);
            }
        }
    }
}

TEST_CASE("scale factors come from the bytes and lanes that the selectors name")
{
    std::mt19937_64 engine(42);
    for (const Form& base : {mxf8, mxf4, nvf4, sparse(mxf8), sparse(mxf4)}) {
        for (unsigned byte = 0; byte < 4; byte += base.scales) {
            for (unsigned thread = 0; thread < 4; ++thread) {
                Form form = base;
                form.byte_a = byte;
                form.byte_b = (byte + base.scales) % 4;
                form.thread_a = thread % 2;
                form.thread_b = thread;
                CAPTURE(form.text());
                CHECK(wrong_sums(form, devices[0], Numerics::exact, engine) == 0);
                // In registers, too.
                CHECK(wrong_sums(form, devices[0], Numerics::exact, engine,
                                 "mov.b16 %h0, " + std::to_string(byte) + ";\nmov.b16 %h1, " +
                                     std::to_string(form.thread_a) + ";\n",
                                 "{%h0, %h1}") == 0);
            }
        }
    }
}

TEST_CASE("a NaN scale factor makes its row NaN, and a large one overflows to infinity")
{
    for (const auto& [form, code] : {std::pair{mxf8, 0xFFU}, std::pair{mxf4, 0xFFFFU}, std::pair{nvf4, 0x7F7F'7F7FU}}) {
        std::mt19937_64 engine(43);
        Product product = random_product(form, engine);
        product.words[5 * 4 * lane_words + 13] = code;  // row 5
        PtxRun run(kernel(form.text(), "sm_120a"), "rtx5090");
        const std::uint64_t in = run.buffer(product.words), out = run.buffer(Words(32 * 4));
        CHECK(run.launch("k", {}, in, out).code == 0);
        const Words found = run.read<std::uint32_t>(out, 32 * 4);
        for (unsigned lane = 0; lane < 32; ++lane) {
            CHECK((found[lane * 4] == 0x7FFF'FFFF) == (lane / 4 == 5));
            CHECK(found[lane * 4 + 2] != 0x7FFF'FFFF);
        }
    }
    std::mt19937_64 engine(44);
    Product product = random_product(mxf8, engine);
    for (unsigned lane = 0; lane < 32; ++lane) {
        product.words[lane * lane_words + 13] = product.words[lane * lane_words + 14] = 0xFE;
    }
    PtxRun run(kernel(mxf8.text(), "sm_120a"), "rtx5090");
    const std::uint64_t in = run.buffer(product.words), out = run.buffer(Words(32 * 4));
    CHECK(run.launch("k", {}, in, out).code == 0);
    CHECK((run.read<std::uint32_t>(out, 1)[0] & 0x7FFF'FFFFU) == 0x7F80'0000U);
}

TEST_CASE("sums in f16 are rounded once")
{
    // Of element (0, 0): 1024 + 1 * 0.5 + 2^-13 * 0.5 is above the middle of 1024 and 1025, but not with 24 bits.
    const Form form{.kind = "kind::f8f6f4", .a = &elements[1], .b = &e2m1, .half = true};
    Words words(32 * lane_words);
    words[0] = 0x083C;  // e5m2: 1, 2^-13
    words[4] = 0x0404;  // e2m1: 0.5, 0.5
    words[8] = 0x6400;
    PtxRun run(kernel(form.text(), "sm_120a"), "rtx5090");
    const std::uint64_t in = run.buffer(words), out = run.buffer(Words(32 * 4));
    CHECK(run.launch("k", {}, in, out).code == 0);
    CHECK(run.read<std::uint32_t>(out, 1)[0] == 0x6401);
}

TEST_CASE("other devices and targets refuse .kind in words")
{
    struct Target {
        const char *device, *target;
    };
    for (const Form& form : {mixed, mxf8, mxf4, nvf4, sparse(mixed), sparse(mxf8), sparse(mxf4), sparse(nvf4)}) {
        CAPTURE(form.text());
        const bool exact = form.sparse && form.packed();
        CHECK(refusal(form.text()) == "");
        CHECK(refusal(form.text(), "gb10", "sm_121a") == "");
        CHECK(refusal(form.text(), "gb10", "sm_121f").empty() == !exact);
        CHECK(refusal(form.text(), "gb10", "sm_120f").empty() == !exact);
        for (const Target& target : {Target{"l40s", "sm_89"},
                                     {"h200", "sm_90a"},
                                     {"b200", "sm_100a"},
                                     {"b300", "sm_103a"},
                                     {"thor", "sm_110a"}}) {
            CHECK(refusal(form.text(), target.device, target.target).find("12.x") != std::string::npos);
        }
        for (const Target& target : {Target{"rtx5090", "sm_120"}, {"gb10", "sm_121"}, {"rtx5090", "sm_100"}}) {
            CHECK(refusal(form.text(), target.device, target.target).find("sm_120a") != std::string::npos);
        }
    }
    // Of 8-bit floats, kind::f8f6f4 is the instruction without .kind, and 10.x has it.
    Form plain = mixed;
    plain.a = plain.b = elements.data();
    CHECK(refusal(plain.text(), "b200", "sm_100a") == "");
    CHECK(refusal(plain.text(), "b200", "sm_100") != "");
    CHECK(refusal(plain.text(), "h200", "sm_90a") != "");
    CHECK(refusal(plain.text(), "rtx5090", "sm_120") != "");
    CHECK(refusal(replaced(plain.text(), ".kind::f8f6f4", ""), "rtx5090", "sm_120") == "");
    plain.half = true;
    CHECK(refusal(sparse(plain).text()) == "");
    CHECK(refusal(sparse(plain).text(), "b200", "sm_100a") != "");
    CHECK(refusal(replaced(sparse(plain).text(), ".kind::f8f6f4", ""), "l40s", "sm_89") != "");
}

TEST_CASE("forms of .kind that ptxas refuses are refused with a sentence")
{
    const auto names = [](const std::string& form, const char* part) {
        const std::string why = refusal(form);
        CAPTURE(form);
        CAPTURE(why);
        CHECK(why.find(part) != std::string::npos);
    };
    // Kinds, shapes and types
    names(replaced(mixed.text(), "f8f6f4", "i8"), "there is no .kind::i8");
    names(replaced(mixed.text(), ".kind::f8f6f4", ""), "need .kind: f8f6f4");
    names(replaced(mixed.text(), "k32", "k16"), "no shape .m16n8k16");
    names(replaced(mixed.text(), "k32", "k64"), "it is .m16n8k32");
    names(replaced(mixed.text(), ".row.col", ".col.row.col"), "'.col'");
    names(replaced(mixed.text(), ".e2m3.e2m1", ".f16.f16"), "no operands of .f16");
    names(replaced(mixed.text(), "f32.e2m3.e2m1.f32", "f32.e2m3.e2m1.f16"), "sums of .f32 and .f16");
    names(replaced(mixed.text(), ".row.col", ".row.col.satfinite"), "'.satfinite'");
    names(replaced(mixed.text(), "{%r4, %r5}", "{%r4}"), "operand b has 1 registers");
    names(replaced(mxf8.text(), "k32", "k64"), "it is .m16n8k32");
    names(replaced(mxf8.text(), "f32.e4m3.e3m2.f32", "f16.e4m3.e3m2.f16"), "sums of .f16");
    names(replaced(mxf4.text(), "e2m1.e2m1", "e4m3.e4m3"), "no operands of .e4m3");
    // Scale factors
    names(replaced(mixed.text(), ".kind", ".block_scale.kind"), "has no .block_scale");
    names(replaced(mxf8.text(), ".block_scale", ""), "needs .block_scale");
    names(replaced(mxf8.text(), ".ue8m0", ""), "of ''");
    names(replaced(mxf8.text(), ".ue8m0", ".ue4m3"), "no .scale_vec::1X with scale factors of 'ue4m3'");
    names(replaced(mxf8.text(), "scale_vec::1X", "scale_vec::2X"), "no .scale_vec::2X");
    names(replaced(mxf4.text(), ".ue8m0", ".ue4m3"), "no .scale_vec::2X with scale factors of 'ue4m3'");
    names(replaced(mxf4.text(), "scale_vec::2X", "scale_vec::4X"), "no .scale_vec::4X");
    names(replaced(nvf4.text(), ".scale_vec::4X", ""), "needs .scale_vec::2X or .scale_vec::4X");
    names(replaced(nvf4.text(), ".ue4m3", ".ue8m0"), "no .scale_vec::4X with scale factors of 'ue8m0'");
    names(replaced(mxf8.text(), ", {0, 0}, %r14, {0, 0}", ""), "takes 8 operands, not 5");
    names(replaced(mxf8.text(), "{0, 0}", "{0}"), "byte-id-a, thread-id-a");
    names(replaced(mxf8.text(), "%r13", "5"), "one 32-bit register");
    names(replaced(mxf8.text(), "{0, 0}", "{%r15, %r15}"), "is a .b32 register");
    names(replaced(mxf8.text(), "{0, 0}", "{4, 0}"), "byte-id-a must be 0, 1, 2 or 3");
    names(replaced(mxf8.text(), "{0, 0}", "{0, 2}"), "thread-id-a must be less than 2");
    names(replaced(mxf4.text(), "%r14, {0, 0}", "%r14, {1, 0}"), "byte-id-b must be 0 or 2");
    names(replaced(mxf4.text(), "%r14, {0, 0}", "%r14, {0, 4}"), "thread-id-b must be less than 4");
    names(replaced(nvf4.text(), "{0, 0}", "{2, 0}"), "byte-id-a must be 0 with");
    // Sparse
    names(replaced(sparse(mixed).text(), "sp::ordered_metadata", "sp"), "needs .sp::ordered_metadata");
    names(replaced(sparse(mixed).text(), "%r12, 0", "%r12, 1"), "selector must be 0");
    // The order of the modifiers is free.
    CHECK(refusal(replaced(replaced(mxf8.text(), ".m16n8k32.row.col", ""), "1X.", "1X.m16n8k32.row.col.")) == "");
    CHECK(refusal(replaced(mxf8.text(), "%r13", "{%r13}")) == "");
}

TEST_CASE("sparsity metadata in another order and selectors that differ are reported")
{
    std::mt19937_64 engine(45);
    const auto findings = [&](const Form& form, const std::string& before, const std::string& selectors = "") {
        const Product product = random_product(form, engine);
        PtxRun run(kernel(before + form.text(selectors), "sm_120a"), "rtx5090");
        const std::uint64_t in = run.buffer(product.words), out = run.buffer(Words(32 * 4));
        CHECK(run.launch("k", {}, in, out).code == 0);
        return run.count(FindingKind::invalid_operand);
    };
    for (const Form& form : {sparse(mixed), sparse(mxf8), sparse(mxf4)}) {
        CHECK(findings(form, "") == 0);
        CHECK(findings(form, "mov.b32 %r12, 0x44444441;\n") > 0);  // 0 and 1, the larger first
        CHECK(findings(form, "mov.b32 %r12, 0x44444445;\n") > 0);  // 1 twice
    }
    // Zeros may have any position, whatever is around them.
    const std::string zeros = "mov.b32 %r0, 0xC0C0C0C0;\nmov.b32 %r1, %r0;\nmov.b32 %r2, %r0;\nmov.b32 %r3, %r0;\n";
    CHECK(findings(sparse(mixed), zeros + "mov.b32 %r12, 0;\n") == 0);
    CHECK(findings(mxf8, "cvt.u16.u32 %h0, %me;\nmov.b16 %h1, 0;\n", "{%h0, %h1}") > 0);
    CHECK(findings(mxf8, "mov.b16 %h0, 0;\nmov.b16 %h1, 2;\n", "{%h0, %h1}") > 0);
    CHECK(findings(mxf8, "mov.b16 %h0, 4;\nmov.b16 %h1, 0;\n", "{%h0, %h1}") > 0);
    CHECK(findings(mxf4, "mov.b16 %h0, 1;\nmov.b16 %h1, 0;\n", "{%h0, %h1}") > 0);
    CHECK(findings(nvf4, "mov.b16 %h0, 2;\nmov.b16 %h1, 0;\n", "{%h0, %h1}") > 0);
    CHECK(findings(nvf4, "mov.b16 %h0, 0;\nmov.b16 %h1, 1;\n", "{%h0, %h1}") == 0);
}

TEST_CASE("part of a warp, and undefined operands, are reported; words of lanes that do not count may be undefined")
{
    std::mt19937_64 engine(46);
    const auto findings = [&](const Form& form, const std::string& before, const std::string& guard = "") {
        const Product product = random_product(form, engine);
        PtxRun run(kernel(before + guard + form.text(), "sm_120a"), "rtx5090");
        const std::uint64_t in = run.buffer(product.words), out = run.buffer(Words(32 * 4));
        CHECK(run.launch("k", {}, in, out).code == 0);
        return run.report.findings().size();
    };
    CHECK(findings(mxf8, "setp.lt.u32 %p, %me, 16;\n", "@%p ") > 0);
    const auto undefined = [](const char* what, const char* lanes) {
        return std::string("and.b32 %r15, %me, 3;\nsetp.") + lanes + ";\n@%p ld.local.b32 " + what + ", [nothing];\n";
    };
    CHECK(findings(mxf8, undefined("%r0", "eq.u32 %p, %r15, 3")) > 0);
    CHECK(findings(sparse(mxf8), undefined("%r12", "eq.u32 %p, %r15, 3")) > 0);
    CHECK(findings(mxf8, undefined("%r13", "lt.u32 %p, %r15, 2")) > 0);
    CHECK(findings(mxf8, undefined("%r13", "ge.u32 %p, %r15, 2")) == 0);
    CHECK(findings(mxf8, undefined("%r14", "eq.u32 %p, %r15, 0")) > 0);
    CHECK(findings(mxf8, undefined("%r14", "ne.u32 %p, %r15, 0")) == 0);
    Form other = mxf8;
    other.thread_a = 1;
    other.thread_b = 2;
    CHECK(findings(other, undefined("%r13", "lt.u32 %p, %r15, 2")) == 0);
    CHECK(findings(other, undefined("%r13", "ge.u32 %p, %r15, 2")) > 0);
    CHECK(findings(other, undefined("%r14", "ne.u32 %p, %r15, 2")) == 0);
    CHECK(findings(other, undefined("%r14", "eq.u32 %p, %r15, 2")) > 0);
}
