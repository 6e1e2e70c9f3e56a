#pragma once

// A test of one matrix instruction: its inputs, and the text of the small kernel around it.

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../hardware/probe_inputs.hpp"

namespace tessera::probe {

/// Contents of a run of input words.
enum class Content : std::uint8_t { f16, bf16, tf32, f32, e4m3, e5m2, raw, s32, f64, metadata, metadata_tf32 };

enum class InputClass : std::uint8_t {
    integers,  ///< small: sums are exact in any order, so only the places of elements matter
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
            if (input != InputClass::integers) {  // never NaN: its bits are undefined
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
    /// Words for the kernel at this offset from %in.
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

}  // namespace tessera::probe
