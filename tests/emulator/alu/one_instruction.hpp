#pragma once

// Runs one PTX instruction on the emulated device for many operands and compares each result with a definition.

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../support/run_ptx.hpp"

namespace tessera::emulator::test {

/// Register types by C++ type. Codes of narrow formats are unsigned integers of their size.
template <typename T>
[[nodiscard]] constexpr const char* register_type()
{
    if constexpr (std::is_same_v<T, float>) {
        return "f32";
    } else if constexpr (std::is_same_v<T, double>) {
        return "f64";
    } else {
        constexpr std::array<const char*, 9> by_size{"", "b8", "b16", "", "b32", "", "", "", "b64"};
        return by_size[sizeof(T)];
    }
}

/// Bits as hexadecimal digits, for messages.
template <typename T>
[[nodiscard]] std::string hex(T value)
{
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    std::string text;
    for (int i = static_cast<int>(2 * sizeof value) - 1; i >= 0; --i) {
        text += "0123456789abcdef"[bits >> (4 * i) & 15];
    }
    return text;
}

/// Operands worth trying: the edges of the type and of what lies inside, and any bits.
template <typename T>
[[nodiscard]] T any_operand(std::mt19937_64& random)
{
    using Bits =
        std::conditional_t<sizeof(T) == 8, std::uint64_t,
                           std::conditional_t<sizeof(T) == 4, std::uint32_t,
                                              std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;
    constexpr unsigned width = 8 * sizeof(T);
    const std::uint64_t draw = random();
    std::uint64_t value = random();
    switch (draw % 8) {
        case 0: value = draw >> 8 & 3; break;     // 0 to 3
        case 1: value = ~(draw >> 8 & 3); break;  // -1 to -4
        case 2:
            value = (std::uint64_t{1} << (width - 1)) - 2 + (draw >> 8 & 3);
            break;                                                             // around the largest signed one
        case 3: value = std::uint64_t{1} << (draw >> 8) % width; break;        // one bit
        case 4: value = (std::uint64_t{1} << (draw >> 8) % width) - 1; break;  // ones
        case 5: value >>= (draw >> 8) % width; break;                          // fewer bits
        default: break;
    }
    return std::bit_cast<T>(static_cast<Bits>(value));
}
/// The same for floating point: random bits, and numbers near one another.
template <>
[[nodiscard]] inline float any_operand<float>(std::mt19937_64& random)
{
    constexpr std::array<std::uint32_t, 16> classics{
        0,          0x80000000, 1,          0x807FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF,
        0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0x3F000000, 0x34000000};
    const std::uint64_t draw = random();
    if (draw % 4 == 0) {
        return std::bit_cast<float>(classics[draw >> 8 & 15]);
    }
    if (draw % 4 == 1) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(draw >> 32));
    }
    return std::bit_cast<float>((static_cast<std::uint32_t>(draw >> 32) & 0x807FFFFFu) |
                                (120u + static_cast<std::uint32_t>(draw >> 8 & 15)) << 23);
}
template <>
[[nodiscard]] inline double any_operand<double>(std::mt19937_64& random)
{
    const std::uint64_t draw = random();
    return draw % 4 == 0 ? double{any_operand<float>(random)} : std::bit_cast<double>(random());
}

/// What stands before the kernel's name and how many threads it has; in `before` and `after` further statements, which
/// have registers p, q, r of type .pred and t0 to t3 of .b32 at hand.
struct Surroundings {
    std::string target = "sm_100a";
    std::string device = "b200";
    std::string before = {};
    std::string after = {};
};

namespace detail {

/// `guard` before each of the statements of `text`, which end with ';'.
[[nodiscard]] inline std::string guard_statements(const std::string& text, const std::string& guard)
{
    std::string result;
    std::size_t start = 0;
    while (start < text.size()) {
        const std::size_t end = std::min(text.find(';', start), text.size() - 1);
        result += guard + text.substr(start, end + 1 - start);
        start = end + 1;
    }
    return result;
}

/// A kernel that loads a, b, c, e, f of thread i from its parameters, runs `instruction` and stores d. d starts with
/// all bits set. guarded: only the odd lanes run it, so that the others show whether it leaves them alone.
template <typename D, typename... S>
[[nodiscard]] std::string kernel_text(const std::string& instruction, const Surroundings& around, bool guarded)
{
    constexpr std::array<const char*, sizeof...(S)> types{register_type<S>()...};
    constexpr std::array<std::size_t, sizeof...(S)> sizes{sizeof(S)...};
    std::string parameters = ".param .u64 out";
    std::string loads;
    for (std::size_t i = 0; i < types.size(); ++i) {
        const std::string name(1, static_cast<char>('a' + static_cast<int>(i) + (i >= 3 ? 1 : 0)));  // a b c e f
        parameters += ", .param .u64 in" + std::to_string(i);
        loads += " .reg ." + std::string(types[i]) + " " + name + ";\n ld.param.u64 %at, [in" + std::to_string(i) +
                 "]; mad.wide.u32 %at, %i, " + std::to_string(sizes[i]) + ", %at; ld.global." + types[i] + " " + name +
                 ", [%at];\n";
    }
    const std::string d_type = register_type<D>();
    std::string initial;
    if (d_type == "f32" || d_type == "f64") {
        initial = " mov." + d_type + " d, " + (d_type == "f32" ? "0fFFFFFFFF" : "0dFFFFFFFFFFFFFFFF") + ";\n";
    } else if (d_type == "b8") {
        initial = " cvt.u8.u32 d, 255;\n";
    } else {
        initial = " mov." + d_type + " d, -1;\n";
    }
    return module_text(around.target,
                       ".visible .entry k(" + parameters +
                           ")\n{\n .reg .pred p, q, r, %guard; .reg .b32 %i, %odd, t<4>; .reg .b64 %at; .reg ." +
                           d_type + " d;\n mov.u32 %i, %ctaid.x; mov.u32 %odd, %tid.x; mad.lo.u32 %i, %i, 32, %odd;\n" +
                           loads + initial + " and.b32 %odd, %odd, 1; setp.ne.u32 %guard, %odd, 0;\n " + around.before +
                           "\n " + (guarded ? guard_statements(instruction, " @%guard ") : instruction) + "\n " +
                           around.after + "\n ld.param.u64 %at, [out]; mad.wide.u32 %at, %i, " +
                           std::to_string(sizeof(D)) + ", %at; st.global." + d_type + " [%at], d;\n ret;\n}\n");
}

}  // namespace detail

/// d for each of the operands. @throws std::runtime_error if it does not run
template <typename D, typename... S>
[[nodiscard]] std::vector<D> results_of(const std::string& instruction, const std::vector<std::tuple<S...>>& operands,
                                        const Surroundings& around = {}, bool guarded = false)
{
    PtxRun run(detail::kernel_text<D, S...>(instruction, around, guarded), around.device);
    const std::size_t blocks = (operands.size() + 31) / 32;
    const std::size_t threads = blocks * 32;
    const std::uint64_t out = run.uninitialized(threads * sizeof(D));
    const LaunchResult result = [&]<std::size_t... I>(std::index_sequence<I...>) {
        const auto column = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
            std::vector<std::tuple_element_t<i, std::tuple<S...>>> values;
            for (std::size_t at = 0; at < threads; ++at) {
                values.push_back(std::get<i>(operands[at < operands.size() ? at : 0]));
            }
            return run.buffer(values);
        };
        return run.launch("k", {.grid = {static_cast<std::uint32_t>(blocks), 1, 1}}, out,
                          column(std::integral_constant<std::size_t, I>{})...);
    }(std::index_sequence_for<S...>{});
    if (result.code != 0) {
        throw std::runtime_error(instruction + ": " + result.message);
    }
    std::vector<D> values = run.read<D>(out, threads);
    values.resize(operands.size());
    return values;
}

/// Compares, for whole warps and for warps with half of the lanes, with `expected(a, b, ...)`.
template <typename D, typename... S, typename F>
void check_for(const std::string& instruction, const std::vector<std::tuple<S...>>& operands, F expected,
               const Surroundings& around = {})
{
    for (const bool guarded : {false, true}) {
        const std::vector<D> values = results_of<D, S...>(instruction, operands, around, guarded);
        std::size_t wrong = 0;
        std::string first;
        for (std::size_t i = 0; i < operands.size(); ++i) {
            D want = std::apply(expected, operands[i]);
            if (guarded && i % 2 == 0) {
                std::memset(&want, 0xFF, sizeof want);
            }
            if (std::memcmp(&want, &values[i], sizeof want) != 0 && wrong++ == 0) {
                first = std::apply([](const auto&... s) { return ((hex(s) + " ") + ...); }, operands[i]) + "gives " +
                        hex(values[i]) + ", expected " + hex(want) + (guarded ? " (guarded)" : "");
            }
        }
        INFO(instruction << ": " << first);
        CHECK(wrong == 0);
    }
}

/// The same with operands drawn for their types.
template <typename D, typename... S, typename F>
void check_lanes(const std::string& instruction, F expected, const Surroundings& around = {})
{
    std::mt19937_64 random(20240229);
    std::vector<std::tuple<S...>> operands;
    for (int i = 0; i < 1024; ++i) {
        operands.emplace_back(any_operand<S>(random)...);
    }
    check_for<D, S...>(instruction, operands, expected, around);
}

/// Why a module with this instruction cannot be launched; empty if it can. Registers %r %rs %rd %f %fd %p %rb %rq as
/// nvcc names them.
[[nodiscard]] inline std::string refusal(const std::string& instruction, const std::string& target = "sm_100a",
                                         const std::string& device = "b200")
{
    PtxRun run(module_text(target,
                           ".visible .entry k()\n{\n .reg .b16 %rs<8>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 "
                           "%f<8>; .reg .f64 %fd<8>;"
                           " .reg .pred %p<8>; .reg .b128 %rq<4>; .reg .b8 %rb<4>;\n " +
                               instruction + "\n ret;\n}\n"),
               device);
    return run.module().find_kernel("k")->load_error;
}

}  // namespace tessera::emulator::test
