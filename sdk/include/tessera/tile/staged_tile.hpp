#pragma once

/// @file
/// @ingroup tile_views
/// @brief How a tile of a stream lies in shared memory. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <type_traits>

#include "tessera/storage_order.hpp"
#include "tessera/swizzle.hpp"

namespace tessera::tile::detail {

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
    static constexpr Swizzle swizzle = contiguous_bytes % 128 == 0 ? Swizzle::b128
                                       : contiguous_bytes == 64    ? Swizzle::b64
                                       : contiguous_bytes == 32    ? Swizzle::b32
                                                                   : Swizzle::none;
    static constexpr int line_bytes = contiguous_bytes % 128 == 0 ? 128 : exists ? contiguous_bytes : 16;
    static constexpr int in_line = line_bytes / bytes_of_element;
    static constexpr int blocks = contiguous / in_line;
    static constexpr int block_bytes = lines * line_bytes;
    static constexpr int bytes = Rows * Columns * bytes_of_element;
    /// Lines that one TMA operation moves.
    static constexpr int box_lines = lines <= 64 ? lines : lines % 64 == 0 ? 64 : lines % 32 == 0 ? 32 : 8;
    /// True if halves of its columns are whole boxes: what each CTA of a pair loads of B.
    static constexpr bool has_halves = exists && (row_major ? blocks % 2 == 0 : lines % (2 * box_lines) == 0);
};

/// Operands begin at multiples of what the widest swizzle repeats after.
constexpr std::uint32_t staged_bytes(std::uint32_t bytes) { return (bytes + 1023) / 1024 * 1024; }

template <class View>
inline constexpr std::uint32_t staged_bytes_of = staged_bytes(static_cast<std::uint32_t>(View::Staged::bytes));
template <class View>
inline constexpr std::uint32_t half_staged_bytes_of = staged_bytes(static_cast<std::uint32_t>(View::Staged::bytes / 2));

}  // namespace tessera::tile::detail
