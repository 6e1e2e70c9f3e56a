#pragma once

// One dense tcgen05.mma (or a chain over K) against a product in double.

#include <bit>
#include <cstring>
#include <functional>
#include <map>

#include "reference.hpp"
#include "tensor_kernel.hpp"

namespace tessera::emulator::test {

/// The value of an f16 code, and the bits of a float.
inline double half_value(std::uint32_t word) { return f16.value(word & 0xFFFF); }
inline double float_value(std::uint32_t word) { return static_cast<double>(std::bit_cast<float>(word)); }

/// The place of D's element (m, n): CTA, lane, column (PTX ISA "Data Path Layout Organization").
struct DPlace {
    unsigned cta = 0, lane = 0, column = 0;
};
inline DPlace d_place(unsigned group, bool ws, unsigned m_extent, unsigned n_extent, unsigned m, unsigned n)
{
    if (group == 2) {
        if (m_extent == 256) {
            return {m / 128, m % 128, n};
        }
        const bool right = n >= n_extent / 2;
        return {m / 64, m % 64 + (right ? 64u : 0u), n % (n_extent / 2)};
    }
    if (ws && m_extent == 64) {
        return {0, m + (n >= n_extent / 2 ? 64u : 0u), n % (n_extent / 2)};
    }
    if (ws && m_extent == 32) {
        return {0, m + 32 * (n / (n_extent / 4)), n % (n_extent / 4)};
    }
    if (m_extent == 64) {
        return {0, m / 16 * 32 + m % 16, n};
    }
    return {0, m, n};
}

struct MmaCase {
    std::string kind = "f16";
    NumberFormat a = f16, b = f16;
    bool is_signed_a = false, is_signed_b = false;  ///< kind::i8
    unsigned m = 128, n = 64;
    unsigned group = 1;
    bool ws = false;
    Layout a_layout = Layout::swizzle_128, b_layout = Layout::swizzle_128;
    bool a_mn_major = false, b_mn_major = false;
    bool f16_result = false;
    bool negate_a = false, negate_b = false;
    unsigned steps = 1;      ///< instructions along K
    unsigned a_skip = 0;     ///< rows in front of a swizzled K-major A, so that it starts within the pattern
    unsigned scale_d = 0;    ///< of the second and later steps
    std::string disabled{};  ///< "{%a4, ...}" registers, with the code that sets them in `prepare`
    std::string prepare{};
    std::function<bool(unsigned cta, unsigned lane)> is_disabled = [](unsigned, unsigned) { return false; };
    Options options{};
    std::uint64_t zero_mask = 0;  ///< .ws
    std::function<double(unsigned n, double value)> b_column = [](unsigned, double value) { return value; };

    [[nodiscard]] unsigned size() const { return std::max(1u, a.bits / 8); }
    [[nodiscard]] unsigned k() const { return 32 / size(); }
    [[nodiscard]] std::uint32_t descriptor() const
    {
        const bool integer = kind == "i8";
        const unsigned a_code = kind == "f16"    ? (a.name == "bf16")
                                : kind == "tf32" ? 2
                                : integer        ? is_signed_a
                                                 : a.code_f8f6f4;
        const unsigned b_code = kind == "f16"    ? (b.name == "bf16")
                                : kind == "tf32" ? 2
                                : integer        ? is_signed_b
                                                 : b.code_f8f6f4;
        return (integer      ? 2u
                : f16_result ? 0u
                             : 1u)
                   << 4 |
               a_code << 7 | b_code << 10 | unsigned{negate_a} << 13 | unsigned{negate_b} << 14 |
               unsigned{a_mn_major} << 15 | unsigned{b_mn_major} << 16 | (n >> 3) << 17 | (m >> 4) << 24;
    }
    /// A tightly packed layout for `rows` rows and all steps of K.
    [[nodiscard]] MemoryLayout memory(Layout layout, bool mn_major, unsigned rows) const
    {
        const std::size_t widths[] = {16, 32, 64, 128, 128};
        const std::size_t width = widths[static_cast<int>(layout)], all_k = std::size_t{k()} * steps;
        const std::size_t row_groups = (rows + 7) / 8;
        if (!mn_major) {
            return layout == Layout::none ? MemoryLayout{layout, false, row_groups * 128, 128}
                                          : MemoryLayout{layout, false, 16, 8 * width};
        }
        if (layout == Layout::none) {
            return {layout, true, 128 * (rows * size() / 16),
                    128};  // leading: 8 K rows further; stride: 16 bytes of M or N further
        }
        const std::size_t group = layout == Layout::swizzle_128_atom_32 ? 4 : 8;
        return {layout, true, width * all_k, width * group};
    }
    /// Bytes of a row of a swizzled layout.
    [[nodiscard]] static unsigned row_bytes(Layout layout)
    {
        return layout == Layout::swizzle_32 ? 32 : layout == Layout::swizzle_64 ? 64 : 128;
    }
    /// Bytes from one step along K to the next.
    [[nodiscard]] std::size_t advance(const MemoryLayout& layout) const
    {
        if (!layout.mn_major) {
            return layout.layout == Layout::none ? 2 * layout.leading : 32;
        }
        const std::size_t group = layout.layout == Layout::swizzle_128_atom_32 ? 4 : 8;
        return k() / group * (layout.layout == Layout::none ? layout.leading : layout.stride);
    }

    struct Result {
        TensorKernel::Outcome outcome;
        double worst = 0;      ///< largest difference from the expected value
        unsigned touched = 0;  ///< elements outside of D that changed
        std::string first;
    };

    [[nodiscard]] Result run(unsigned seed = 1) const
    {
        Random random(seed);
        const auto sample = [&](const NumberFormat& format, bool is_signed) {
            if (kind == "i8") {
                return is_signed ? random() % 256 : random() % 256;
            }
            return format.sample(random);
        };
        const Matrix ma = make_matrix(m, std::size_t{k()} * steps,
                                      [&] { return static_cast<std::uint32_t>(sample(a, is_signed_a)); });
        const Matrix mb = make_matrix(n, std::size_t{k()} * steps,
                                      [&] { return static_cast<std::uint32_t>(sample(b, is_signed_b)); });

        // Images: A at 0, B after it, at multiples of 1024; each CTA of a pair has half of each.
        const unsigned rows_a = m / group, rows_b = n / group;
        const MemoryLayout la = memory(a_layout, a_mn_major, rows_a), lb = memory(b_layout, b_mn_major, rows_b);
        std::vector<std::byte> image;
        std::size_t b_base = 0, per_cta = 0;
        for (unsigned cta = 0; cta < group; ++cta) {
            std::vector<std::byte> part;
            Matrix stored = ma;
            stored.codes.insert(stored.codes.begin(), a_skip * ma.k, 0);
            store(part, 0, la, stored, size(), cta * rows_a, rows_a + a_skip);
            b_base = (part.size() + 1023) / 1024 * 1024;
            part.resize(b_base);
            store(part, b_base, lb, mb, size(), cta * rows_b, rows_b);
            per_cta = (part.size() + 1023) / 1024 * 1024;
            part.resize(per_cta);
            image.insert(image.end(), part.begin(), part.end());
        }

        const unsigned d_column = 8;
        const unsigned d_columns = group == 2 && m == 128 ? n / 2 : ws && m == 64 ? n / 2 : ws && m == 32 ? n / 4 : n;
        TensorKernel kernel;
        kernel.cta_group = kernel.ctas = group;
        kernel.dump_column = d_column;
        kernel.dump_columns = d_columns;
        // A pattern first, to see that columns outside of D do not change.
        for (unsigned c = 0; c < d_columns; ++c) {
            kernel.by_all_before += fmt::format(
                "    mov.b32 %a1, {};\n    add.u32 %a0, %taddr, {};\n    tcgen05.st.sync.aligned.32x32b.x1.b32 [%a0], "
                "{{%a1}};\n",
                pattern(c), d_column + c);
        }
        kernel.by_all_before += "    tcgen05.wait::st.sync.aligned;\n    tcgen05.fence::before_thread_sync;\n";
        kernel.by_one =
            prepare + fmt::format("    add.u32 %a0, %taddr, {};\n    mov.b32 %a1, {:#x};\n", d_column, descriptor());
        for (unsigned step = 0; step < steps; ++step) {
            kernel.by_one +=
                TensorKernel::descriptor("%l0", la.descriptor(),
                                         static_cast<unsigned>(a_skip * row_bytes(a_layout) + step * advance(la))) +
                TensorKernel::descriptor("%l1", lb.descriptor(), static_cast<unsigned>(b_base + step * advance(lb))) +
                fmt::format("    setp.ne.u32 %p0, {}, 0;\n", step);
            std::string tail = disabled.empty() ? "%p0" : disabled + ", %p0";
            if (step > 0 && scale_d != 0) {
                tail += fmt::format(", {}", scale_d);
            }
            if (zero_mask != 0) {
                tail += ", %l2";
                kernel.by_one += fmt::format("    mov.b64 %l2, {:#x};\n", zero_mask);
            }
            kernel.by_one += fmt::format("    tcgen05.mma{}.cta_group::{}.kind::{} [%a0], %l0, %l1, %a1, {};\n",
                                         ws ? ".ws" : "", group, kind, tail);
        }
        kernel.by_one += kernel.commit();

        Result result;
        result.outcome = kernel.run(image, options);
        std::map<std::uint64_t, std::pair<unsigned, unsigned>> covered;
        for (unsigned row = 0; row < m; ++row) {
            for (unsigned column = 0; column < n; ++column) {
                const DPlace place = d_place(group, ws, m, n, row, column);
                const std::size_t index = (std::size_t{place.cta} * 128 + place.lane) * d_columns + place.column;
                if (is_disabled(place.cta, place.lane)) {
                    continue;
                }
                covered[index] = {row, column};
                double expected = 0;
                for (unsigned step = 0; step < steps; ++step) {
                    double part = 0;
                    for (unsigned depth = step * k(); depth < (step + 1) * k(); ++depth) {
                        part += element(ma.at(row, depth), a, is_signed_a) *
                                b_column(column, element(mb.at(column, depth), b, is_signed_b));
                    }
                    expected = (step > 0 ? std::ldexp(expected, -static_cast<int>(scale_d)) : 0) +
                               (negate_a != negate_b ? -part : part);
                }
                const std::uint32_t word = result.outcome.words[index];
                const double got = kind == "i8" ? static_cast<std::int32_t>(word)
                                   : f16_result ? half_value(word)
                                                : float_value(word);
                const double difference = std::abs(got - expected);
                if (!(difference <= result.worst)) {
                    if (result.first.empty()) {
                        result.first = fmt::format("row {} column {}: {} instead of {}", row, column, got, expected);
                    }
                    result.worst = std::isnan(difference) ? 1e30 : difference;
                }
            }
        }
        for (std::size_t index = 0; index < result.outcome.words.size(); ++index) {
            if (!covered.contains(index) &&
                result.outcome.words[index] != pattern(static_cast<unsigned>(index % d_columns))) {
                ++result.touched;
            }
        }
        for (const Finding& finding : result.outcome.findings) {
            result.first += "\n" + std::string(name_of(finding.kind)) + ": " + finding.message;
        }
        return result;
    }

private:
    static std::uint32_t pattern(unsigned column) { return 0x40000000 + column; }
    [[nodiscard]] double element(std::uint32_t code, const NumberFormat& format, bool is_signed) const
    {
        if (kind == "i8") {
            return is_signed ? static_cast<std::int8_t>(code) : static_cast<std::uint8_t>(code);
        }
        return format.value(code);
    }
};

}  // namespace tessera::emulator::test
