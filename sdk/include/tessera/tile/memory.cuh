#pragma once

/// @file
/// @ingroup tile_views
/// @brief How tiles come from global memory into registers, and back. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <cuda/ptx>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tessera/tile/cta.cuh"
#include "tessera/tile/matrix.hpp"
#include "tessera/tile/tile.cuh"

namespace tessera::tile::detail {

/// A word of this many bytes.
template <int Bytes>
struct word_of;
template <>
struct word_of<1> {
    using type = std::uint8_t;
};
template <>
struct word_of<2> {
    using type = std::uint16_t;
};
template <>
struct word_of<4> {
    using type = std::uint32_t;
};
template <>
struct word_of<8> {
    using type = uint2;
};
template <>
struct word_of<16> {
    using type = uint4;
};

/// `Count` neighbours in memory, moved by one instruction.
template <class T, int Count>
struct Neighbours {
    using Word = typename word_of<static_cast<int>(sizeof(T)) * Count>::type;
    T of[Count];

    __device__ static Neighbours load(const T* from)
    {
        return __builtin_bit_cast(Neighbours, *reinterpret_cast<const Word*>(from));
    }
    __device__ void store(T* to) const
    {
        if constexpr (sizeof(Word) <= 2) {
            *reinterpret_cast<Word*>(to) = __builtin_bit_cast(Word, *this);
        } else {
            // Words are put together by hand: nvcc would else store them in pieces.
            constexpr int in_word = 4 / static_cast<int>(sizeof(T));
            std::uint32_t words[sizeof(Word) / 4];
#pragma unroll
            for (int i = 0; i < static_cast<int>(sizeof(Word)) / 4; ++i) {
                words[i] = 0;
#pragma unroll
                for (int j = 0; j < in_word; ++j) {
                    words[i] |= bits(of[i * in_word + j]) << 8 * static_cast<int>(sizeof(T)) * j;
                }
            }
            if constexpr (sizeof(Word) == 16) {
                __stwb(reinterpret_cast<uint4*>(to), make_uint4(words[0], words[1], words[2], words[3]));
            } else if constexpr (sizeof(Word) == 8) {
                __stwb(reinterpret_cast<uint2*>(to), make_uint2(words[0], words[1]));
            } else {
                *reinterpret_cast<std::uint32_t*>(to) = words[0];
            }
        }
    }

private:
    __device__ static std::uint32_t bits(const T& value)
    {
        return __builtin_bit_cast(typename word_of<static_cast<int>(sizeof(T))>::type, value);
    }
};

/// The first element of a tile.
struct Spot {
    std::int64_t batch;
    std::int64_t row;
    std::int64_t column;
};

/// Returns what a matrix has of a tile along one side.
template <Edge At, int Extent>
__device__ __forceinline__ int covered(std::int64_t extent, std::int64_t first)
{
    if constexpr (At == Edge::none) {
        return Extent;
    } else if constexpr (At == Edge::whole) {
        return first < extent ? Extent : 0;
    } else {
        return static_cast<int>(::min(extent - first, static_cast<std::int64_t>(Extent)));
    }
}

/// The part of a matrix that a tile of (R, C) covers.
template <Edges At, int R, int C, class T, class Order>
struct Window {
    T* first;                        // element (0, 0) of the tile
    std::int64_t leading_dimension;  // of the matrix
    int rows;                        // that the matrix has of the tile
    int columns;

    __device__ Window(const Memory<T, Order>& memory, const Spot& spot)
        : first(memory.at(spot.batch, spot.row, spot.column)),
          leading_dimension(memory.leading_dimension),
          rows(covered<At.rows, R>(memory.rows, spot.row)),
          columns(covered<At.columns, C>(memory.columns, spot.column))
    {}
    __device__ bool has(int row, int column) const
    {
        return has_line(At.rows, row, rows) && has_line(At.columns, column, columns);
    }
    __device__ bool has_all() const
    {
        return (At.rows == Edge::none || rows == R) && (At.columns == Edge::none || columns == C);
    }
    __device__ T* at(int row, int column) const
    {
        return Memory<T, Order>::row_major ? first + (row * leading_dimension + column)
                                           : first + (column * leading_dimension + row);
    }

private:
    __device__ static bool has_line(Edge edge, int line, int lines)
    {
        return edge == Edge::none || (edge == Edge::whole ? lines > 0 : line < lines);
    }
};
template <Edges At, int R, int C, class T, class Order>
__device__ __forceinline__ Window<At, R, C, T, Order> window_of(const Memory<T, Order>& memory, const Spot& spot)
{
    return {memory, spot};
}

/// True if vectors of `Length` neighbours in a row are all inside or all outside.
template <Edges At, int Length, class T, class Order>
__device__ __forceinline__ bool has_vectors(const Memory<T, Order>& memory)
{
    return memory.in_vectors && (At.columns == Edge::none || memory.columns % Length == 0);
}

/// The vectors of a thread's values that one instruction moves: of at most 16 bytes.
template <class T, class Layout>
struct VectorsOf {
    static constexpr int bytes = Layout::vector * static_cast<int>(sizeof(T));
    static constexpr int length = bytes > 16 ? 16 / static_cast<int>(sizeof(T)) : Layout::vector;
    static constexpr int count = Layout::registers / length;
    using Vector = Neighbours<T, length>;
    /// Values of 32 bytes: two lanes have four vectors side by side. Moved as the lanes have them, an instruction has every second
    /// vector, and half of each sector. So a pair of lanes moves neighbours by each instruction.
    static constexpr bool in_pairs = bytes == 32 && Layout::is_full && Layout::in_row % 2 == 0;

    /// True if the lane moves vector `i` of a whole tile, from or to (`row`, `column`).
    __device__ static bool exists(int i) { return Layout::exists(i * length); }
    __device__ static int row(int i) { return Layout::row(i * length); }
    __device__ static int column(int i)
    {
        if constexpr (in_pairs) {
            const int of_pair = i % 2 * 2 - static_cast<int>(lane() % 2);
            return Layout::column(i / 2 * Layout::vector) + of_pair * length;
        } else {
            return Layout::column(i * length);
        }
    }
    /// Exchanges vectors between those that a lane moves and its own.
    __device__ static void exchange(Vector (&vectors)[count])
    {
        if constexpr (in_pairs) {
            const bool odd = lane() % 2 != 0;
#pragma unroll
            for (int i = 0; i < count; i += 2) {
#pragma unroll
                for (int j = 0; j < length; ++j) {
                    T& first = vectors[i].of[j];
                    T& second = vectors[i + 1].of[j];
                    const T received = __shfl_xor_sync(~0U, odd ? first : second, 1);
                    (odd ? first : second) = received;
                }
            }
        }
    }
};

/// Loads a thread's values of a tile.
template <Edges At, class T, int R, int C, class Layout, class Element, class Order>
__device__ __forceinline__ void load_values(Tile<T, R, C, Layout>& tile, const Memory<Element, Order>& memory,
                                            const Spot& spot, T outside)
{
    auto& values = Access::values(tile);
    const auto window = window_of<At, R, C>(memory, spot);
    if constexpr (requires { Layout::vector; } && Memory<Element, Order>::row_major) {
        using Vectors = VectorsOf<T, Layout>;
        using Vector = typename Vectors::Vector;
        const bool is_whole = memory.in_vectors && window.has_all();
        if (is_whole || has_vectors<At, Vectors::length>(memory)) {
            Vector vectors[Vectors::count];  // all are under way before the first is used
#pragma unroll
            for (int i = 0; i < Vectors::count; ++i) {
#pragma unroll
                for (int j = 0; j < Vectors::length; ++j) {
                    vectors[i].of[j] = outside;
                }
            }
            if (is_whole) {  // the same loads, but that none has a condition
#pragma unroll
                for (int i = 0; i < Vectors::count; ++i) {
                    if (Vectors::exists(i)) {
                        vectors[i] = Vector::load(window.at(Vectors::row(i), Vectors::column(i)));
                    }
                }
                Vectors::exchange(vectors);
            } else {
#pragma unroll
                for (int i = 0; i < Vectors::count; ++i) {
                    const int first = i * Vectors::length;
                    if (Layout::exists(first) && window.has(Layout::row(first), Layout::column(first))) {
                        vectors[i] = Vector::load(window.at(Layout::row(first), Layout::column(first)));
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < Layout::registers; ++i) {
                values[i] = vectors[i / Vectors::length].of[i % Vectors::length];
            }
            return;
        }
    }
#pragma unroll
    for (int i = 0; i < Layout::registers; ++i) {
        values[i] = outside;
        if (Layout::exists(i) && window.has(Layout::row(i), Layout::column(i))) {
            values[i] = *window.at(Layout::row(i), Layout::column(i));
        }
    }
}

/// Exchanges between the four lanes that have neighbouring columns: lane q gets word q of each of them.
__device__ __forceinline__ void transpose_in_quad(std::uint32_t (&words)[4])
{
    const bool odd = lane() % 2 != 0;
    const bool upper = lane() % 4 >= 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const std::uint32_t other = __shfl_xor_sync(~0U, odd ? words[i] : words[i + 1], 1);
        (odd ? words[i] : words[i + 1]) = other;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const std::uint32_t other = __shfl_xor_sync(~0U, upper ? words[i] : words[i + 2], 2);
        (upper ? words[i] : words[i + 2]) = other;
    }
}

/// Stores sums. Four lanes have eight columns of a row; of 16-bit elements, they exchange 32 columns so that each writes 16 bytes.
template <Edges At, class T, int R, int C, class Layout, class Order>
    requires is_fragments<Layout>
__device__ __forceinline__ void store_values(const Tile<T, R, C, Layout>& tile, const Memory<T, Order>& memory,
                                             const Spot& spot)
{
    const auto& values = Access::values(tile);
    const auto window = window_of<At, R, C>(memory, spot);
    const bool inside = window.has_all();
    if constexpr (Memory<T, Order>::row_major && sizeof(T) == 2 && Layout::along_n % 4 == 0) {
        if (inside && memory.in_vectors) {
#pragma unroll
            for (int m = 0; m < Layout::along_m; ++m) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    T* const line = window.at(Layout::row(m * 4 * Layout::along_n + 2 * half),
                                              Layout::Grid::n() * 8 * Layout::along_n + lane() % 4 * 8);
#pragma unroll
                    for (int n = 0; n < Layout::along_n; n += 4) {
                        std::uint32_t words[4];
#pragma unroll
                        for (int i = 0; i < 4; ++i) {
                            const int first = (m * Layout::along_n + n + i) * 4 + 2 * half;
                            words[i] = __builtin_bit_cast(std::uint16_t, values[first]) |
                                       static_cast<std::uint32_t>(__builtin_bit_cast(std::uint16_t, values[first + 1]))
                                           << 16;
                        }
                        transpose_in_quad(words);
                        __stwb(reinterpret_cast<uint4*>(line + n * 8),
                               make_uint4(words[0], words[1], words[2], words[3]));
                    }
                }
            }
            return;
        }
    }
    if constexpr (Memory<T, Order>::row_major) {
        if (inside && memory.in_vectors) {
#pragma unroll
            for (int i = 0; i < Layout::registers; i += 2) {
                const Neighbours<T, 2> pair{values[i], values[i + 1]};
                pair.store(window.at(Layout::row(i), Layout::column(i)));
            }
            return;
        }
    }
#pragma unroll
    for (int i = 0; i < Layout::registers; ++i) {
        if (window.has(Layout::row(i), Layout::column(i))) {
            *window.at(Layout::row(i), Layout::column(i)) = values[i];
        }
    }
}

template <Edges At, class T, int R, int C, class Layout, class Order>
__device__ __forceinline__ void store_values(const Tile<T, R, C, Layout>& tile, const Memory<T, Order>& memory,
                                             const Spot& spot)
{
    const auto& values = Access::values(tile);
    const auto window = window_of<At, R, C>(memory, spot);
    if constexpr (requires { Layout::vector; } && Memory<T, Order>::row_major) {
        using Vectors = VectorsOf<T, Layout>;
        using Vector = typename Vectors::Vector;
        const bool is_whole = memory.in_vectors && window.has_all();
        if (is_whole || has_vectors<At, Vectors::length>(memory)) {
            Vector vectors[Vectors::count];
#pragma unroll
            for (int i = 0; i < Layout::registers; ++i) {
                vectors[i / Vectors::length].of[i % Vectors::length] = values[i];
            }
            if (is_whole) {
                Vectors::exchange(vectors);
#pragma unroll
                for (int i = 0; i < Vectors::count; ++i) {
                    if (Vectors::exists(i)) {
                        vectors[i].store(window.at(Vectors::row(i), Vectors::column(i)));
                    }
                }
                return;
            }
#pragma unroll
            for (int i = 0; i < Vectors::count; ++i) {
                const int first = i * Vectors::length;
                if (Layout::exists(first) && window.has(Layout::row(first), Layout::column(first))) {
                    vectors[i].store(window.at(Layout::row(first), Layout::column(first)));
                }
            }
            return;
        }
    }
#pragma unroll
    for (int i = 0; i < Layout::registers; ++i) {
        if (Layout::owns(i) && window.has(Layout::row(i), Layout::column(i))) {
            *window.at(Layout::row(i), Layout::column(i)) = values[i];
        }
    }
}

/// Adds a thread's values of a tile to memory, one by one.
template <Edges At, int R, int C, class Layout, class Order>
__device__ __forceinline__ void add_values(const Tile<float, R, C, Layout>& tile, const Memory<float, Order>& memory,
                                           const Spot& spot)
{
    const auto& values = Access::values(tile);
    const auto window = window_of<At, R, C>(memory, spot);
#pragma unroll
    for (int i = 0; i < Layout::registers; ++i) {
        if (Layout::owns(i) && window.has(Layout::row(i), Layout::column(i))) {
            atomicAdd(window.at(Layout::row(i), Layout::column(i)), values[i]);
        }
    }
}

}  // namespace tessera::tile::detail
