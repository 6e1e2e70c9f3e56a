#pragma once

// The instructions of one warp: mma, wmma, ldmatrix, stmatrix, movmatrix.

#include "instruction_text.hpp"

namespace tessera::probe {

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
        // The metadata must be loaded before the instruction.
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

}  // namespace tessera::probe
