#pragma once

// Small kernels that execute one matrix instruction each, and their inputs: the same PTX and the same bits on a GPU
// (tests/emulator/hardware/matrix_probe.cpp) and on the emulated device (hopper_matrix_test.cpp). Every kernel has the
// parameters
// (.u64 in, .u64 out) and runs as one CTA.

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../hardware/probe_inputs.hpp"

namespace tessera::probe {

/// What a run of input words holds.
enum class Content : std::uint8_t { f16, bf16, tf32, f32, e4m3, e5m2, raw, s32, f64, metadata, metadata_tf32 };

enum class InputClass : std::uint8_t {
    integers,  ///< small ones: sums are exact in any order, so only the places of elements matter
    normal,    ///< random values of similar size
    raw,       ///< random bits: infinities, NaN and subnormal numbers too
};
inline constexpr std::array<const char*, 3> input_class_names{"integers", "normal", "raw"};

struct InputGroup {
    Content content = Content::raw;
    std::size_t words = 0;
};

struct InstructionForm {
    std::string name;
    std::string kernel;  ///< its name in the module
    std::string ptx;     ///< the .entry
    std::vector<InputGroup> inputs;
    std::size_t output_words = 0;
    unsigned threads = 32;
    unsigned shared_bytes = 0;  ///< dynamic
};

// ---- inputs ----

inline std::uint32_t random_word(Content content, InputClass input, Generator& random)
{
    const auto each = [&](unsigned bits, auto&& element) {
        std::uint32_t word = 0;
        for (unsigned bit = 0; bit < 32; bit += bits) {
            const std::uint32_t mask = bits == 32 ? 0xFFFFFFFFU : (1U << bits) - 1U;
            word |= (static_cast<std::uint32_t>(element()) & mask) << bit;
        }
        return word;
    };
    const auto floating = [&](unsigned mantissa, unsigned exponent, unsigned bias, unsigned pad) {
        const unsigned width = mantissa + exponent + 1;
        return each(width + pad, [&]() -> std::uint32_t {
            const std::uint32_t sign = random.below(2) << (width - 1);
            if (input == InputClass::integers) {  // 0, 1, 2, 3 and their negatives
                static constexpr std::array<unsigned, 4> powers{0, 0, 1, 1};
                const unsigned value = random.below(4);
                const std::uint32_t fraction = value == 3 ? 1U << (mantissa - 1) : 0U;
                return value == 0 ? 0U : (sign | ((bias + powers[value]) << mantissa) | fraction) << pad;
            }
            const std::uint32_t scale = bias - 4 + random.below(8);
            return (sign | (scale << mantissa) | random.below(1U << mantissa)) << pad;
        });
    };
    if (content == Content::metadata || content == Content::metadata_tf32) {
        static constexpr std::array<unsigned, 6> pairs{0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110};
        static constexpr std::array<unsigned, 2> singles{0b0100, 0b1110};
        return each(4,
                    [&] { return content == Content::metadata ? pairs[random.below(6)] : singles[random.below(2)]; });
    }
    if (input == InputClass::raw) {
        return static_cast<std::uint32_t>(random.next());
    }
    switch (content) {
        case Content::f16: return floating(10, 5, 15, 0);
        case Content::bf16: return floating(7, 8, 127, 0);
        case Content::tf32: return floating(10, 8, 127, 13);
        case Content::f32: return floating(23, 8, 127, 0);
        case Content::e4m3: return floating(3, 4, 7, 0);
        case Content::e5m2: return floating(2, 5, 15, 0);
        case Content::s32: return random.below(2000) - 1000U;
        default: return static_cast<std::uint32_t>(random.next());
    }
}

inline std::vector<std::uint32_t> form_inputs(const InstructionForm& form, InputClass input)
{
    Generator random(fnv1a(form.name.data(), form.name.size()) + static_cast<std::uint64_t>(input));
    std::vector<std::uint32_t> words;
    for (const InputGroup& group : form.inputs) {
        for (std::size_t i = 0; i < group.words; ++i) {
            if (group.content != Content::f64) {
                words.push_back(random_word(group.content, input, random));
                continue;
            }
            double value = static_cast<double>(static_cast<int>(random.below(7)) - 3);
            if (input != InputClass::integers) {  // never NaN: its bits are not defined
                const auto spread = static_cast<int>(random.below(input == InputClass::raw ? 60 : 4));
                value = static_cast<double>(static_cast<std::int64_t>(random.next())) / 9.2e18;
                for (int step = 0; step < spread; ++step) {
                    value *= 0.5;
                }
            }
            std::array<std::uint32_t, 2> halves{};
            std::memcpy(halves.data(), &value, 8);
            words.push_back(halves[0]);
            words.push_back(halves[1]);
            ++i;
        }
    }
    return words;
}

// ---- text ----

inline std::string number(std::uint64_t value) { return std::to_string(value); }

/// "{%r4,%r5}"
inline std::string registers(const char* prefix, unsigned first, unsigned count)
{
    std::string text = "{";
    for (unsigned i = 0; i < count; ++i) {
        text += (i == 0 ? "" : ",") + std::string(prefix) + number(first + i);
    }
    return text + "}";
}

/// Builds one kernel: loads register by register from `in`, and stores to `out`, lane by lane.
class KernelText {
public:
    explicit KernelText(unsigned threads = 32) : threads_(threads) {}
    /// `count` 32-bit registers from the input; the number of the first.
    unsigned load(unsigned count, Content content)
    {
        const unsigned first = next_;
        for (unsigned i = 0; i < count; ++i) {
            body += "ld.global.u32 %r" + number(next_++) + ", [%lane32+" + number(in_) + "];\n";
            in_ += 4 * threads_;
        }
        add_input(content, std::size_t{count} * threads_);
        return first;
    }
    unsigned load_f64(unsigned count)
    {
        const unsigned first = next_wide_;
        for (unsigned i = 0; i < count; ++i) {
            body += "ld.global.f64 %d" + number(next_wide_++) + ", [%lane64+" + number(in_) + "];\n";
            in_ += 8 * threads_;
        }
        add_input(Content::f64, std::size_t{count} * threads_ * 2);
        return first;
    }
    /// Words that the kernel finds at this offset from %in.
    unsigned input(std::size_t words, Content content)
    {
        const unsigned at = in_;
        in_ += static_cast<unsigned>(4 * words);
        add_input(content, words);
        return at;
    }
    unsigned fresh(unsigned count)
    {
        const unsigned first = next_;
        next_ += count;
        return first;
    }
    unsigned fresh_f64(unsigned count)
    {
        const unsigned first = next_wide_;
        next_wide_ += count;
        return first;
    }
    void store(unsigned first, unsigned count)
    {
        for (unsigned i = 0; i < count; ++i) {
            body += "st.global.u32 [%out32+" + number(out_) + "], %r" + number(first + i) + ";\n";
            out_ += 4 * threads_;
        }
    }
    void store_f64(unsigned first, unsigned count)
    {
        for (unsigned i = 0; i < count; ++i) {
            body += "st.global.f64 [%out64+" + number(out_) + "], %d" + number(first + i) + ";\n";
            out_ += 8 * threads_;
        }
    }
    void output(std::size_t words) { out_ += static_cast<unsigned>(4 * words); }

    InstructionForm finish(const std::string& name, unsigned shared_bytes = 0)
    {
        InstructionForm form;
        form.name = name;
        form.kernel = "k_";
        for (const char c : name) {
            form.kernel += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
        }
        form.ptx = ".visible .entry " + form.kernel + "(.param .u64 p_in, .param .u64 p_out)\n.maxntid " +
                   number(threads_) +
                   "\n{\n.reg .b32 %r<600>;\n.reg .f64 %d<40>;\n.reg .b64 %a, %b, %in, %out, %lane32, %lane64, %out32, "
                   "%out64, %t;\n"
                   ".reg .b32 %me, %s, %x, %y, %z;\n.reg .pred %p, %q;\n"
                   "ld.param.u64 %in, [p_in];\nld.param.u64 %out, [p_out];\ncvta.to.global.u64 %in, %in;\n"
                   "cvta.to.global.u64 %out, %out;\nmov.u32 %me, %tid.x;\nmul.wide.u32 %t, %me, 4;\n"
                   "add.u64 %lane32, %in, %t;\nadd.u64 %out32, %out, %t;\nmul.wide.u32 %t, %me, 8;\n"
                   "add.u64 %lane64, %in, %t;\nadd.u64 %out64, %out, %t;\n" +
                   body + "ret;\n}\n";
        form.inputs = inputs_;
        form.output_words = out_ / 4;
        form.threads = threads_;
        form.shared_bytes = shared_bytes;
        return form;
    }

    std::string body;

private:
    void add_input(Content content, std::size_t words) { inputs_.push_back({content, words}); }
    unsigned threads_;
    unsigned next_ = 0, next_wide_ = 0, in_ = 0, out_ = 0;
    std::vector<InputGroup> inputs_;
};

struct ElementType {
    const char* name;
    unsigned bits;
    Content content;
};
inline constexpr std::array<ElementType, 12> element_types{{{"f16", 16, Content::f16},
                                                            {"bf16", 16, Content::bf16},
                                                            {"tf32", 32, Content::tf32},
                                                            {"e4m3", 8, Content::e4m3},
                                                            {"e5m2", 8, Content::e5m2},
                                                            {"s8", 8, Content::raw},
                                                            {"u8", 8, Content::raw},
                                                            {"s4", 4, Content::raw},
                                                            {"u4", 4, Content::raw},
                                                            {"b1", 1, Content::raw},
                                                            {"f64", 64, Content::f64},
                                                            {"f32", 32, Content::f32}}};
inline const ElementType& element_type(std::string_view name)
{
    for (const ElementType& type : element_types) {
        if (name == type.name) {
            return type;
        }
    }
    return element_types[0];
}
inline Content sum_content(std::string_view name)
{
    return name == "f16" ? Content::f16 : name == "f32" ? Content::f32 : Content::s32;
}

// ---- mma ----

struct MmaCase {
    unsigned m, n, k;
    const char *d, *a, *b, *c;
    const char* suffix = "";  ///< after the types
    const char* before = "";  ///< before the types
    int selector = -1;        ///< sparse
    const char* layout = ".row.col";
};

inline InstructionForm mma_form(const MmaCase& c)
{
    const ElementType &a = element_type(c.a), &b = element_type(c.b);
    const bool sparse = c.selector >= 0;
    const bool quads = c.m == 8 && c.k == 4 && a.bits == 16;
    KernelText text;
    const std::string name = std::string("mma") + (sparse ? ".sp::ordered_metadata" : "") + ".sync.aligned.m" +
                             number(c.m) + "n" + number(c.n) + "k" + number(c.k) + c.layout + c.before + "." + c.d +
                             "." + c.a + "." + c.b + "." + c.c + c.suffix;
    if (a.bits == 64) {
        const unsigned na = c.m * c.k / 32, nb = c.n * c.k / 32, nc = c.m * c.n / 32;
        const unsigned ra = text.load_f64(na), rb = text.load_f64(nb), rc = text.load_f64(nc), rd = text.fresh_f64(nc);
        text.body += name + " " + registers("%d", rd, nc) + ", " + registers("%d", ra, na) + ", " +
                     registers("%d", rb, nb) + ", " + registers("%d", rc, nc) + ";\n";
        text.store_f64(rd, nc);
        return text.finish(name);
    }
    const unsigned na = quads ? 2 : c.m * (sparse ? c.k / 2 : c.k) * a.bits / 1024;
    const unsigned nb = quads ? 2 : c.n * c.k * b.bits / 1024;
    const unsigned sums = quads ? 4 * 64 / 32 : c.m * c.n / 32;
    const auto sum_registers = [&](const char* type) { return std::string_view(type) == "f16" ? sums / 2 : sums; };
    const unsigned ra = text.load(na, a.content), rb = text.load(nb, b.content),
                   rc = text.load(sum_registers(c.c), sum_content(c.c)), rd = text.fresh(sum_registers(c.d));
    text.body += name + " " + registers("%r", rd, sum_registers(c.d)) + ", " + registers("%r", ra, na) + ", ";
    std::string operands = registers("%r", rb, nb) + ", " + registers("%r", rc, sum_registers(c.c));
    std::string full_name = name;
    if (sparse) {
        const unsigned re = text.load(1, a.bits == 32 ? Content::metadata_tf32 : Content::metadata);
        // the metadata must be there before the instruction
        const std::size_t at = text.body.rfind("ld.global");
        const std::string load = text.body.substr(at);
        text.body.erase(at);
        text.body.insert(text.body.rfind("mma.sp"), load);
        operands += ", %r" + number(re) + ", " + number(static_cast<unsigned>(c.selector));
        full_name += " selector " + number(static_cast<unsigned>(c.selector));
    }
    text.body += operands + ";\n";
    text.store(rd, sum_registers(c.d));
    return text.finish(full_name);
}

inline void add_mma_forms(std::vector<InstructionForm>& forms)
{
    const auto add = [&](const MmaCase& c) { forms.push_back(mma_form(c)); };
    for (const char* layout : {".row.col", ".row.row", ".col.col", ".col.row"}) {
        add({8, 8, 4, "f32", "f16", "f16", "f32", "", "", -1, layout});
        add({8, 8, 4, "f16", "f16", "f16", "f16", "", "", -1, layout});
    }
    add({8, 8, 4, "f32", "f16", "f16", "f16"});
    for (const unsigned k : {8U, 16U}) {
        add({16, 8, k, "f32", "f16", "f16", "f32"});
        add({16, 8, k, "f16", "f16", "f16", "f16"});
        add({16, 8, k, "f32", "bf16", "bf16", "f32"});
    }
    add({16, 8, 4, "f32", "tf32", "tf32", "f32"});
    add({16, 8, 8, "f32", "tf32", "tf32", "f32"});
    add({8, 8, 4, "f64", "f64", "f64", "f64"});
    for (const unsigned k : {4U, 8U, 16U}) {
        for (const char* rounding : {"", ".rz", ".rm", ".rp"}) {
            add({16, 8, k, "f64", "f64", "f64", "f64", rounding});
        }
    }
    for (const char* a : {"s8", "u8"}) {
        for (const char* b : {"s8", "u8"}) {
            for (const char* saturate : {"", ".satfinite"}) {
                add({8, 8, 16, "s32", a, b, "s32", "", saturate});
                add({16, 8, 16, "s32", a, b, "s32", "", saturate});
                add({16, 8, 32, "s32", a, b, "s32", "", saturate});
            }
        }
    }
    for (const char* a : {"s4", "u4"}) {
        for (const char* b : {"s4", "u4"}) {
            for (const char* saturate : {"", ".satfinite"}) {
                add({8, 8, 32, "s32", a, b, "s32", "", saturate});
                add({16, 8, 32, "s32", a, b, "s32", "", saturate});
                add({16, 8, 64, "s32", a, b, "s32", "", saturate});
            }
        }
    }
    for (const char* operation : {".and.popc", ".xor.popc"}) {
        add({8, 8, 128, "s32", "b1", "b1", "s32", operation});
        add({16, 8, 128, "s32", "b1", "b1", "s32", operation});
        add({16, 8, 256, "s32", "b1", "b1", "s32", operation});
    }
    for (const char* a : {"e4m3", "e5m2"}) {
        for (const char* b : {"e4m3", "e5m2"}) {
            for (const char* sum : {"f32", "f16"}) {
                add({16, 8, 16, sum, a, b, sum});
                add({16, 8, 32, sum, a, b, sum});
            }
        }
    }
    // Sparse: one form for each selector.
    const auto sparse = [&](unsigned k, const char* sum, const char* a, const char* b, int selectors,
                            const char* saturate = "") {
        for (int selector = 0; selector < selectors; ++selector) {
            add({16, 8, k, sum, a, b, sum, "", saturate, selector});
        }
    };
    sparse(16, "f32", "f16", "f16", 4);
    sparse(16, "f16", "f16", "f16", 1);
    sparse(32, "f32", "f16", "f16", 2);
    sparse(32, "f16", "f16", "f16", 1);
    sparse(16, "f32", "bf16", "bf16", 2);
    sparse(32, "f32", "bf16", "bf16", 2);
    sparse(8, "f32", "tf32", "tf32", 4);
    sparse(16, "f32", "tf32", "tf32", 2);
    sparse(32, "s32", "s8", "u8", 2);
    sparse(64, "s32", "u8", "s8", 1, ".satfinite");
    sparse(64, "s32", "s4", "u4", 2);
    sparse(128, "s32", "u4", "s4", 1);
    sparse(64, "f32", "e4m3", "e5m2", 1);
}

// ---- wmma: load, multiply, store, whatever the fragments are ----

inline void add_wmma_forms(std::vector<InstructionForm>& forms)
{
    struct Case {
        unsigned m, n, k;
        const char *a, *sum;
        unsigned a_registers, b_registers, sum_registers;
        const char* suffix = "";
    };
    static constexpr std::array<Case, 18> cases{{{16, 16, 16, "f16", "f32", 8, 8, 8},
                                                 {32, 8, 16, "f16", "f32", 8, 8, 8},
                                                 {8, 32, 16, "f16", "f32", 8, 8, 8},
                                                 {16, 16, 16, "f16", "f16", 8, 8, 4},
                                                 {32, 8, 16, "f16", "f16", 8, 8, 4},
                                                 {8, 32, 16, "f16", "f16", 8, 8, 4},
                                                 {16, 16, 16, "bf16", "f32", 4, 4, 8},
                                                 {32, 8, 16, "bf16", "f32", 8, 2, 8},
                                                 {8, 32, 16, "bf16", "f32", 2, 8, 8},
                                                 {16, 16, 8, "tf32", "f32", 4, 4, 8},
                                                 {16, 16, 16, "s8", "s32", 2, 2, 8},
                                                 {32, 8, 16, "s8", "s32", 4, 1, 8},
                                                 {8, 32, 16, "u8", "s32", 1, 4, 8},
                                                 {16, 16, 16, "u8", "s32", 2, 2, 8, ".satfinite"},
                                                 {8, 8, 32, "s4", "s32", 1, 1, 2},
                                                 {8, 8, 32, "u4", "s32", 1, 1, 2},
                                                 {8, 8, 128, "b1", "s32", 1, 1, 2},
                                                 {8, 8, 4, "f64", "f64", 1, 1, 2}}};
    for (const Case& c : cases) {
        const ElementType& type = element_type(c.a);
        const bool wide = type.bits == 64;
        for (const char* layouts : {".row.col", ".col.row", ".row.row", ".col.col"}) {
            const std::string a_layout = std::string(layouts).substr(0, 4), b_layout = std::string(layouts).substr(4);
            if (type.bits < 8 && std::string_view(layouts) != ".row.col") {
                continue;
            }
            const std::string shape = ".m" + number(c.m) + "n" + number(c.n) + "k" + number(c.k);
            KernelText text;
            const char* const prefix = wide ? "%d" : "%r";
            const auto fresh = [&](unsigned count) { return wide ? text.fresh_f64(count) : text.fresh(count); };
            // Strides are the dense ones plus 16 bytes (of 1-bit elements 128 bits).
            const unsigned pad = 128 / type.bits;
            const auto stride = [&](bool row, unsigned rows, unsigned columns) { return (row ? columns : rows) + pad; };
            const unsigned sa = stride(a_layout == ".row", c.m, c.k), sb = stride(b_layout == ".row", c.k, c.n);
            const unsigned la = a_layout == ".row" ? c.m : c.k, lb = b_layout == ".row" ? c.k : c.n;
            const unsigned sum_bits = std::string_view(c.sum) == "f16" ? 16 : wide ? 64 : 32;
            const unsigned sc = c.n + 128 / sum_bits;
            const unsigned at_a = text.input(la * sa * type.bits / 32, type.content);
            const unsigned at_b = text.input(lb * sb * type.bits / 32, type.content);
            const unsigned at_c = text.input(c.m * sc * sum_bits / 32, wide ? Content::f64 : sum_content(c.sum));
            const std::string ra = registers(prefix, fresh(c.a_registers), c.a_registers),
                              rb = registers(prefix, fresh(c.b_registers), c.b_registers),
                              rc = registers(prefix, fresh(c.sum_registers), c.sum_registers),
                              rd = registers(prefix, fresh(c.sum_registers), c.sum_registers);
            const auto load = [&](const char* part, const std::string& layout, const char* element,
                                  const std::string& to, unsigned at, unsigned elements) {
                text.body += "add.u64 %t, %in, " + number(at) + ";\nwmma.load." + part + ".sync.aligned" + layout +
                             shape + ".global." + element + " " + to + ", [%t], " + number(elements) + ";\n";
            };
            load("a", a_layout, c.a, ra, at_a, sa);
            load("b", b_layout, c.a, rb, at_b, sb);
            load("c", ".row", c.sum, rc, at_c, sc);
            const bool f16 = std::string_view(c.a) == "f16";
            const std::string types = f16 ? std::string(".") + c.sum + "." + c.sum
                                          : std::string(".") + c.sum + "." + c.a + "." + c.a + "." + c.sum;
            const std::string bits = type.bits == 1 ? ".xor.popc" : "";
            const std::string name =
                "wmma.mma" + bits + ".sync.aligned" + layouts + shape + types + (wide ? ".rn" : "") + c.suffix;
            text.body += name + " " + rd + ", " + ra + ", " + rb + ", " + rc + ";\n";
            // Column-major, so that both layouts of accumulators are seen; every word of the padded columns is stored
            // once.
            const unsigned so = c.m + 128 / sum_bits;
            text.body += "wmma.store.d.sync.aligned.col" + shape + ".global." + c.sum + " [%out], " + rd + ", " +
                         number(so) + ";\n";
            text.output(c.n * so * sum_bits / 32);
            forms.push_back(text.finish(name));
        }
    }
}

// ---- ldmatrix, stmatrix, movmatrix ----

inline void add_transfer_forms(std::vector<InstructionForm>& forms)
{
    // Shared memory: 32 rows of 16 bytes, 80 bytes apart; lane l gives the address of row (l*5+3)%32.
    const std::string address =
        "mov.u32 %s, smem;\nmul.lo.u32 %x, %me, 5;\nadd.u32 %x, %x, 3;\nand.b32 %x, %x, 31;\n"
        "mul.lo.u32 %x, %x, 80;\nadd.u32 %x, %x, %s;\n";
    const std::string own_row = "mov.u32 %s, smem;\nmul.lo.u32 %y, %me, 80;\nadd.u32 %y, %y, %s;\n";
    for (const unsigned count : {1U, 2U, 4U}) {
        for (const char* trans : {"", ".trans"}) {
            {
                KernelText text;
                const unsigned first = text.load(4, Content::raw);
                text.body +=
                    own_row + "st.shared.v4.b32 [%y], " + registers("%r", first, 4) + ";\nbar.sync 0;\n" + address;
                const std::string name = "ldmatrix.sync.aligned.m8n8.x" + number(count) + trans + ".shared.b16";
                const unsigned d = text.fresh(count);
                text.body += name + " " + registers("%r", d, count) + ", [%x];\n";
                text.store(d, count);
                forms.push_back(text.finish(name, 2560));
            }
            {
                KernelText text;
                const unsigned fill = text.load(4, Content::raw);
                const unsigned a = text.load(count, Content::raw);
                text.body +=
                    own_row + "st.shared.v4.b32 [%y], " + registers("%r", fill, 4) + ";\nbar.sync 0;\n" + address;
                const std::string name = "stmatrix.sync.aligned.m8n8.x" + number(count) + trans + ".shared.b16";
                text.body += name + " [%x], " + registers("%r", a, count) + ";\nbar.sync 0;\n";
                const unsigned d = text.fresh(4);
                text.body += "ld.shared.v4.b32 " + registers("%r", d, 4) + ", [%y];\n";
                text.store(d, 4);
                forms.push_back(text.finish(name, 2560));
            }
        }
    }
    KernelText text;
    const unsigned a = text.load(1, Content::raw), d = text.fresh(1);
    text.body += "movmatrix.sync.aligned.m8n8.trans.b16 %r" + number(d) + ", %r" + number(a) + ";\n";
    text.store(d, 1);
    forms.push_back(text.finish("movmatrix.sync.aligned.m8n8.trans.b16"));
}

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
    // The instruction's K is 32 bytes; wider swizzles see the first 32 bytes of each line.
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

inline std::vector<InstructionForm> all_forms()
{
    std::vector<InstructionForm> forms;
    add_mma_forms(forms);
    add_wmma_forms(forms);
    add_transfer_forms(forms);
    add_wgmma_forms(forms);
    for (std::size_t i = 0; i < forms.size(); ++i) {  // the same kernel name never twice, whatever the forms' names
        const std::string unique = "k" + number(i);
        forms[i].ptx.replace(forms[i].ptx.find(forms[i].kernel), forms[i].kernel.size(), unique);
        forms[i].kernel = unique;
    }
    return forms;
}

inline std::string matrix_module(const std::vector<InstructionForm>& forms)
{
    std::string text = ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n";
    for (const InstructionForm& form : forms) {
        text += form.ptx;
    }
    return text;
}

}  // namespace tessera::probe
