#pragma once

/// @file
/// @ingroup tile_views
/// @brief How a tile of a stream lies in shared memory. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <type_traits>

#include "tessera/storage_order.hpp"
#include "tessera/swizzle.hpp"

namespace tessera::tile::detail {

/// The widest span of a swizzle that lines of so many bytes are made of; 16, the least that TMA writes, if there is none.
constexpr int widest_span(int bytes)
{
    return bytes % 128 == 0 ? 128 : bytes % 64 == 0 ? 64 : bytes % 32 == 0 ? 32 : 16;
}
constexpr Swizzle swizzle_of_span(int bytes)
{
    return bytes == 128 ? Swizzle::b128 : bytes == 64 ? Swizzle::b64 : bytes == 32 ? Swizzle::b32 : Swizzle::none;
}
/// Lines of a box of TMA: whole patterns of eight, of which `lines` are a multiple.
constexpr int largest_box(int lines)
{
    int box = 64;
    while (box > 8 && lines % box != 0) {
        box -= 8;
    }
    return box;
}

/// How a tile is stored in shared memory: in lines of at most 128 bytes along its contiguous direction, swizzled. A *block* has
/// all lines of one such piece.
template <class T, int Rows, int Columns, class Order>
struct StagedTile {
    using element_type = T;
    static constexpr bool row_major = std::is_same_v<Order, RowMajor>;
    static constexpr int bytes_of_element = static_cast<int>(sizeof(T));
    static constexpr int contiguous = row_major ? Columns : Rows;  // elements
    static constexpr int lines = row_major ? Rows : Columns;
    static constexpr int contiguous_bytes = contiguous * bytes_of_element;
    /// True if TMA and the tensor cores can have the tile.
    static constexpr bool exists =
        contiguous_bytes % 16 == 0 &&
        (contiguous_bytes % 128 == 0 || contiguous_bytes == 64 || contiguous_bytes == 32 || contiguous_bytes == 16);
    static constexpr int line_bytes = exists ? widest_span(contiguous_bytes) : 16;
    static constexpr Swizzle swizzle = swizzle_of_span(line_bytes);
    static constexpr int in_line = line_bytes / bytes_of_element;
    static constexpr int blocks = contiguous / in_line;
    static constexpr int block_bytes = lines * line_bytes;
    static constexpr int bytes = Rows * Columns * bytes_of_element;
    /// Lines that one TMA operation moves.
    static constexpr int box_lines = lines <= 64 ? lines : lines % 64 == 0 ? 64 : lines % 32 == 0 ? 32 : 8;
};

/// The same tile where each CTA of a pair has a half of its columns: B of a product. A half is whole blocks and boxes, so these
/// may be smaller than those of the whole tile.
template <class Whole>
struct HalvedTile : Whole {
    /// True if TMA and the tensor cores can have a half.
    static constexpr bool exists =
        Whole::exists && (Whole::row_major ? Whole::contiguous_bytes % 32 == 0 : Whole::lines % 16 == 0);
    static constexpr int line_bytes = widest_span(Whole::contiguous_bytes / (Whole::row_major ? 2 : 1));
    static constexpr Swizzle swizzle = swizzle_of_span(line_bytes);
    static constexpr int in_line = line_bytes / Whole::bytes_of_element;
    static constexpr int blocks = Whole::contiguous / in_line;
    static constexpr int block_bytes = Whole::lines * line_bytes;
    static constexpr int box_lines = Whole::row_major ? Whole::box_lines : largest_box(Whole::lines / 2);
    /// True if a tensor map of the whole tile does not load halves.
    static constexpr bool has_own_map = exists && (line_bytes != Whole::line_bytes || box_lines != Whole::box_lines);
};

/// Operands begin at multiples of what the widest swizzle repeats after.
constexpr std::uint32_t staged_bytes(std::uint32_t bytes) { return (bytes + 1023) / 1024 * 1024; }

template <class View>
inline constexpr std::uint32_t staged_bytes_of = staged_bytes(static_cast<std::uint32_t>(View::Staged::bytes));
template <class View>
inline constexpr std::uint32_t half_staged_bytes_of = staged_bytes(static_cast<std::uint32_t>(View::Staged::bytes / 2));

}  // namespace tessera::tile::detail
