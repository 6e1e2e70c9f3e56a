#pragma once

// Runs one PTX instruction on the emulated device for many operands, and compares each result with a definition.

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

/// Useful operands: edges of the type and of the ranges inside it, and random bits.
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

/// Text around the instruction: before the kernel's name, and the number of threads; `before` and `after` are more
/// statements, which may use registers p, q, r of type .pred and t0 to t3 of .b32.
struct Surroundings {
    std::string target = "sm_100a";
    std::string device = "b200";
    std::string before = {};
    std::string after = {};
};

namespace detail {

/// Operands or results of one register, a value for each thread, without their C++ type. This keeps the code that is
/// compiled for each type and lambda small; these tests have hundreds.
struct Column {
    const char* type;
    std::size_t size;  ///< bytes of a value
    std::vector<std::byte> bytes;
};

template <typename T>
[[nodiscard]] Column column_of(const std::vector<T>& values)
{
    Column column{register_type<T>(), sizeof(T), std::vector<std::byte>(values.size() * sizeof(T))};
    std::memcpy(column.bytes.data(), values.data(), column.bytes.size());
    return column;
}

template <typename... S>
[[nodiscard]] std::vector<Column> columns_of(const std::vector<std::tuple<S...>>& operands)
{
    std::vector<Column> columns{
        {register_type<S>(), sizeof(S), std::vector<std::byte>(operands.size() * sizeof(S))}...};
    for (std::size_t i = 0; i < operands.size(); ++i) {
        std::size_t column = 0;
        std::apply(
            [&](const S&... values) {
                (std::memcpy(columns[column++].bytes.data() + i * sizeof(S), &values, sizeof(S)), ...);
            },
            operands[i]);
    }
    return columns;
}

/// The bytes of d for each of the operands. @throws std::runtime_error if it does not run
[[nodiscard]] std::vector<std::byte> run_columns(const std::string& instruction, const char* d_type, std::size_t d_size,
                                                 const std::vector<Column>& operands, const Surroundings& around,
                                                 bool guarded);

/// Checks d for whole warps and for warps with half of the lanes.
void check_columns(const std::string& instruction, const std::vector<Column>& operands, const Column& expected,
                   const Surroundings& around);

}  // namespace detail

/// d for each of the operands. @throws std::runtime_error if it does not run
template <typename D, typename... S>
[[nodiscard]] std::vector<D> results_of(const std::string& instruction, const std::vector<std::tuple<S...>>& operands,
                                        const Surroundings& around = {}, bool guarded = false)
{
    const std::vector<std::byte> bytes =
        detail::run_columns(instruction, register_type<D>(), sizeof(D), detail::columns_of(operands), around, guarded);
    std::vector<D> values(operands.size());
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(D));
    return values;
}

/// Compares, for whole warps and for warps with half of the lanes, with `expected(a, b, ...)`.
template <typename D, typename... S, typename F>
void check_for(const std::string& instruction, const std::vector<std::tuple<S...>>& operands, F expected,
               const Surroundings& around = {})
{
    std::vector<D> values(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
        values[i] = std::apply(expected, operands[i]);
    }
    detail::check_columns(instruction, detail::columns_of(operands), detail::column_of(values), around);
}

template <typename... S>
[[nodiscard]] std::vector<std::tuple<S...>> drawn_operands()
{
    std::mt19937_64 random(20240229);
    std::vector<std::tuple<S...>> operands;
    for (int i = 0; i < 1024; ++i) {
        operands.emplace_back(any_operand<S>(random)...);
    }
    return operands;
}

/// The same with operands drawn for their types.
template <typename D, typename... S, typename F>
void check_lanes(const std::string& instruction, F expected, const Surroundings& around = {})
{
    check_for<D, S...>(instruction, drawn_operands<S...>(), expected, around);
}

/// Why a module with this instruction cannot be launched; empty if it can. Registers %r %rs %rd %f %fd %p %rb %rq as
/// nvcc names them.
[[nodiscard]] std::string refusal(const std::string& instruction, const std::string& target = "sm_100a",
                                  const std::string& device = "b200");

}  // namespace tessera::emulator::test
