#pragma once

/// @file
/// @ingroup tile_programs
/// @brief What the host must know of the members of a program that is compiled at run time. The compiler writes it into the
/// program's PTX, byte by byte. Private to tessera/tile.

#include <cstdint>
#include <type_traits>

#include "tessera/element.hpp"
#include "tessera/swizzle.hpp"

namespace tessera::tile::detail {

/// What a member is.
enum class MemberKind : std::uint8_t { value, input, output, numbers };
/// What kind of value, or of numbers.
enum class ValueKind : std::uint8_t { other, boolean, floating, signed_integer, unsigned_integer };

/// The kind of a type.
template <class T>
inline constexpr ValueKind value_kind_of = std::is_same_v<T, bool>       ? ValueKind::boolean
                                           : std::is_floating_point_v<T> ? ValueKind::floating
                                           : !std::is_integral_v<T>      ? ValueKind::other
                                           : std::is_signed_v<T>         ? ValueKind::signed_integer
                                                                         : ValueKind::unsigned_integer;

/// A member of a program.
struct Member {
    MemberKind kind = MemberKind::value;
    ElementType element{};  // of an input or output
    bool row_major = false;
    bool can_be_staged = false;  // an input whose tiles can pass through shared memory
    Swizzle swizzle = Swizzle::none;
    ValueKind number = ValueKind::other;
    std::int32_t rows = 0;  // of a tile
    std::int32_t columns = 0;
    std::int64_t compiled_rows = -1;  // of the matrix that the program is compiled for; -1: any
    std::int64_t compiled_columns = -1;
    std::uint32_t in_line = 0;  // of a tensor map's box
    std::uint32_t box_lines = 0;
    std::uint32_t in_line_of_halves = 0;  // of one that loads halves of tiles, and its swizzle
    std::uint32_t box_lines_of_halves = 0;
    Swizzle swizzle_of_halves = Swizzle::none;
    std::uint32_t bytes = 0;
    std::uint32_t alignment = 1;
    std::uint32_t number_bytes = 0;  // of one of `Numbers`
};

/// Members of a program at most.
inline constexpr int most_members = 12;

/// A program.
struct ProgramMembers {
    std::uint32_t count = 0;
    std::uint32_t bytes = 0;  // of the program
    std::uint32_t threads_mma_sync = 0;
    std::uint32_t threads_wgmma = 0;  // of an empty kernel: there is none
    std::uint32_t threads_by_tma = 0;
    std::uint32_t threads_tcgen05 = 0;
    std::uint32_t stages = 0;  // that its hints wish
    std::uint32_t cluster = 0;
    std::uint32_t cluster_columns = 1;
    bool pairs = false;  // that its hints allow
    Member of[most_members];
};

}  // namespace tessera::tile::detail
