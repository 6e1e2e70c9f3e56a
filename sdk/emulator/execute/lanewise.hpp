#pragma once

// Instructions that compute d = f(a, b, ...) in each lane. The decoder selects the types once, so that the handler is
// one loop over 32 lanes that the compiler vectorizes.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/lanes.hpp"
#include "machine/warp.hpp"
#include "program/decoder.hpp"
#include "program/operation.hpp"
#include "ptx/ast.hpp"

namespace tessera::emulator {

/// A value of a 128-bit register.
struct alignas(16) Bits128 {
    std::uint64_t low = 0, high = 0;
    friend bool operator==(const Bits128&, const Bits128&) = default;
};

/// d[lane] = f(s[lane]...) for the lanes in `active`. Rows may overlap completely: each lane is read before it is
/// written.
template <typename D, typename F, typename... S>
inline void map_lanes(LaneMask active, F f, D* d, const S*... s)
{
    if (active == all_lanes) {
#pragma GCC ivdep
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            d[lane] = f(s[lane]...);
        }
    } else {
        for_each_lane(active, [&](unsigned lane) { d[lane] = f(s[lane]...); });
    }
}

/// Handler of d = f(a, b, ...): operand 0 is d, the others follow. `f` is stateless.
template <typename D, typename... S, typename F>
[[nodiscard]] Execute lanewise(F)
{
    static_assert(std::is_empty_v<F>, "what f needs to know belongs into the payload: lanewise_with");
    return [](Warp& warp, const Operation& operation, LaneMask active) -> Step {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            map_lanes(active, F{}, warp.row<D>(operation.operand[0]),
                      static_cast<const S*>(warp.row<S>(operation.operand[I + 1]))...);
        }(std::index_sequence_for<S...>{});
        return Step::next;
    };
}

/// The same for d = f(payload, a, b, ...).
template <typename P, typename D, typename... S, typename F>
[[nodiscard]] Execute lanewise_with(F)
{
    static_assert(std::is_empty_v<F>);
    return [](Warp& warp, const Operation& operation, LaneMask active) -> Step {
        const P payload = operation.as<P>();  // a copy: the compiler then knows that no store to a row changes it
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            map_lanes(
                active, [&payload](S... s) { return F{}(payload, s...); }, warp.row<D>(operation.operand[0]),
                static_cast<const S*>(warp.row<S>(operation.operand[I + 1]))...);
        }(std::index_sequence_for<S...>{});
        return Step::next;
    };
}

/// The lanes, of all 32, for which `f` is true.
template <typename F, typename... S>
[[nodiscard]] inline LaneMask test_lanes(F f, const S*... s)
{
    LaneMask result = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        result |= f(s[lane]...) ? LaneMask{1} << lane : LaneMask{0};
    }
    return result;
}

/// The lanes, of all 32, with this value.
template <typename T>
[[nodiscard]] inline LaneMask equal_lanes(const T* row, T value)
{
    return test_lanes([value](T other) { return other == value; }, row);
}

// --- types ---

[[nodiscard]] constexpr bool is_floating(ptx::Type type) noexcept
{
    using enum ptx::Type;
    return type == f16 || type == f16x2 || type == bf16 || type == bf16x2 || type == f32 || type == f64 ||
           type == f32x2;
}

[[nodiscard]] constexpr bool is_signed(ptx::Type type) noexcept
{
    using enum ptx::Type;
    return type == s8 || type == s16 || type == s32 || type == s64 || type == s16x2;
}

/// The untyped bits of a value of this size: .b16 for 2.
[[nodiscard]] constexpr ptx::Type bits_of_size(std::size_t bytes) noexcept
{
    switch (bytes) {
        case 1: return ptx::Type::b8;
        case 2: return ptx::Type::b16;
        case 4: return ptx::Type::b32;
        case 8: return ptx::Type::b64;
        default: return ptx::Type::b128;
    }
}

/// Calls f<T>() with the C++ type of a .u16 to .s64; returns false for other types.
template <typename F>
bool visit_integer(ptx::Type type, F f)
{
    switch (type) {
        case ptx::Type::u16: f.template operator()<std::uint16_t>(); return true;
        case ptx::Type::u32: f.template operator()<std::uint32_t>(); return true;
        case ptx::Type::u64: f.template operator()<std::uint64_t>(); return true;
        case ptx::Type::s16: f.template operator()<std::int16_t>(); return true;
        case ptx::Type::s32: f.template operator()<std::int32_t>(); return true;
        case ptx::Type::s64: f.template operator()<std::int64_t>(); return true;
        default: return false;
    }
}

/// Calls f<T>() with the unsigned type of `bytes` (2, 4 or 8); returns false for other sizes.
template <typename F>
bool visit_bits(std::size_t bytes, F f)
{
    switch (bytes) {
        case 2: f.template operator()<std::uint16_t>(); return true;
        case 4: f.template operator()<std::uint32_t>(); return true;
        case 8: f.template operator()<std::uint64_t>(); return true;
        default: return false;
    }
}

/// Unsigned type in which sums and products of T wrap as in PTX, without promotion to a signed int.
template <std::integral T>
using Wrapping = std::conditional_t<(sizeof(T) <= 4), std::uint32_t, std::uint64_t>;

// --- decoding ---

[[nodiscard]] inline std::string dotted(ptx::Type type) { return "." + std::string(ptx::name_of(type)); }

[[noreturn]] inline void fail_type(const Decoder& decoder, ptx::Type type)
{
    decoder.fail("is not defined for type " + dotted(type));
}

/// Returns true if a floating-point type is among the remaining modifiers.
[[nodiscard]] inline bool names_floating_type(const Decoder& decoder)
{
    for (const std::string& modifier : decoder.remaining()) {
        if (const auto type = ptx::type_named(modifier); type && is_floating(*type)) {
            return true;
        }
    }
    return false;
}

/// Reads the operands of d = f(sources...): operand 0 of the operation is d's row, 1 and up are the sources'.
inline void decode_rows(Decoder& decoder, Operation& operation, ptx::Type destination,
                        std::initializer_list<ptx::Type> sources)
{
    expect_operands(decoder, 1 + sources.size());
    operation.operand[0] = decoder.write(0, destination);
    std::size_t index = 1;
    for (const ptx::Type type : sources) {
        operation.operand[index] = decoder.read(index, type);
        ++index;
    }
}

/// Joins several tables.
[[nodiscard]] inline std::vector<InstructionEntry> join_tables(
    std::initializer_list<std::span<const InstructionEntry>> tables)
{
    std::vector<InstructionEntry> all;
    for (const auto table : tables) {
        all.insert(all.end(), table.begin(), table.end());
    }
    return all;
}

// Decoders of opcodes that exist for integers and for floating-point numbers. The integer table has the opcode and
// calls these.
namespace floating {
void decode_add(Decoder& decoder, Operation& operation);
void decode_sub(Decoder& decoder, Operation& operation);
void decode_mul(Decoder& decoder, Operation& operation);
void decode_mad(Decoder& decoder, Operation& operation);
void decode_div(Decoder& decoder, Operation& operation);
void decode_abs(Decoder& decoder, Operation& operation);
void decode_neg(Decoder& decoder, Operation& operation);
void decode_min(Decoder& decoder, Operation& operation);
void decode_max(Decoder& decoder, Operation& operation);
}  // namespace floating

// Parts of integer_instructions() and conversion_instructions() with their own files.
[[nodiscard]] std::span<const InstructionEntry> bit_instructions();         // execute/bits.cpp
[[nodiscard]] std::span<const InstructionEntry> comparison_instructions();  // execute/comparison.cpp
[[nodiscard]] std::span<const InstructionEntry> video_instructions();       // execute/video.cpp
[[nodiscard]] std::span<const InstructionEntry> move_instructions();        // execute/move.cpp

}  // namespace tessera::emulator
