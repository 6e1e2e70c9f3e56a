#pragma once

/// @file
/// @ingroup tile_views
/// @brief `Input` and `Output`: matrices in memory, cut into tiles; `Place`: which tile a program is at.
///
/// Only an output's partition makes places. No two CTAs get the same one, and a tile can be stored only at a place: programs cannot
/// overwrite each other's results. Elements outside of a matrix are loaded as a value of the program's choice, and not stored.

#include "tessera/detail/language.hpp"

#include <cuda/ptx>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "tessera/detail/refused.hpp"
#include "tessera/device/tile_raster.hpp"
#include "tessera/device_span.hpp"
#include "tessera/matrix_view.hpp"
#include "tessera/tensor_map.hpp"
#include "tessera/tile/cta.cuh"
#include "tessera/tile/tile.cuh"

namespace tessera::tile {

template <class T, int Rows, int Columns, class Order>
class Output;

/// Where a tile is. `Input::load` takes it; `Output::store` takes only a `Place`.
/// @tparam Rows     of a tile
/// @tparam Columns  of a tile
template <class Machine, int Rows, int Columns>
class Position {
public:
    static constexpr int rows = Rows;        ///< of a tile
    static constexpr int columns = Columns;  ///< of a tile

    /// Returns the tile's first row in the matrix.
    TESSERA_TILE std::int64_t first_row() const { return std::int64_t{row_} * Rows; }
    /// Returns the tile's first column in the matrix.
    TESSERA_TILE std::int64_t first_column() const { return std::int64_t{column_} * Columns; }
    /// Returns the row in tiles.
    TESSERA_TILE std::uint32_t tile_row() const { return row_; }
    /// Returns the column in tiles.
    TESSERA_TILE std::uint32_t tile_column() const { return column_; }
    /// Returns the number of the matrix in its batch.
    TESSERA_TILE std::uint32_t batch() const { return batch_; }
    /// For the library.
    TESSERA_TILE detail::RingState& ring() const { return *ring_; }

private:
    template <class, int, int>
    friend class Place;
    TESSERA_TILE Position() {}  // for a place that is refused
    TESSERA_TILE Position(const TilePosition& position, detail::RingState& ring)
        : ring_(&ring), row_(position.row), column_(position.column), batch_(position.batch)
    {}

    detail::RingState* ring_;
    std::uint32_t row_;
    std::uint32_t column_;
    std::uint32_t batch_;
};

/// A tile of the output that the calling CTA is at, and nobody else. Made by `Output::tiles`.
/// @tparam Rows     of a tile
/// @tparam Columns  of a tile
template <class Machine, int Rows, int Columns>
class Place : public Position<Machine, Rows, Columns> {
public:
    /// Refuses to compile: a place made by hand could be another CTA's.
    template <std::integral... Indices>
    TESSERA_TILE explicit Place(Indices...)
    {
        static_assert(tessera::detail::always_false<Indices...>,
                      "tessera: places are not made by hand: output.tiles(cta) has those that no other CTA has");
    }

    /// Returns the position of this tile in the transposed matrix: (column, row) in tiles. Other CTAs may store a tile there, so it
    /// is only loaded from.
    TESSERA_TILE Position<Machine, Columns, Rows> transposed() const
    {
        return Position<Machine, Columns, Rows>(TilePosition{this->tile_column(), this->tile_row(), this->batch()},
                                                this->ring());
    }

private:
    template <class, int, int, class>
    friend class Output;
    template <class, int, int>
    friend class PlaceRange;
    TESSERA_TILE Place(const TilePosition& position, detail::RingState& ring)
        : Position<Machine, Rows, Columns>(position, ring)
    {}
};

namespace detail {

/// The order of the tiles of an output.
struct TileOrder {
    const TileRaster* raster;
    std::uint32_t rows;     // in tiles
    std::uint32_t columns;  // in tiles
    std::uint32_t batches;
    bool from_last_row;  // the last row of all matrices first, instead of the raster's order

    TESSERA_TILE std::uint32_t count() const { return rows * columns * batches; }
    TESSERA_TILE TilePosition position(std::uint32_t tile) const
    {
        if (!from_last_row) {
            return raster->position(tile);
        }
        const std::uint32_t in_matrix = tile / batches;
        return {rows - 1 - in_matrix / columns, in_matrix % columns, tile % batches};
    }
};

}  // namespace detail

/// The places of the calling CTA: one of each round of as many tiles as there are CTAs, forwards and backwards in turn, so that work
/// that grows from tile to tile is shared equally.
template <class Machine, int Rows, int Columns>
class PlaceRange {
public:
    /// The end of the range.
    struct End {};
    /// Goes from one place to the next.
    class Iterator {
    public:
        /// For the library.
        TESSERA_TILE Iterator(const detail::TileOrder& order, detail::RingState& ring, std::uint32_t cta,
                              std::uint32_t ctas)
            : order_(order), ring_(&ring), tile_(cta), step_(2 * (ctas - cta) - 1), round_trip_(2 * ctas)
        {}
        /// Returns the place.
        TESSERA_TILE Place<Machine, Rows, Columns> operator*() const { return {order_.position(tile_), *ring_}; }
        /// Goes on to the next place.
        TESSERA_TILE Iterator& operator++()
        {
            tile_ += step_;
            step_ = round_trip_ - step_;
            return *this;
        }
        /// Returns false after the last place.
        TESSERA_TILE bool operator!=(End) const { return tile_ < order_.count(); }

    private:
        detail::TileOrder order_;
        detail::RingState* ring_;
        std::uint32_t tile_;
        std::uint32_t step_;
        std::uint32_t round_trip_;
    };

    /// For the library.
    TESSERA_TILE PlaceRange(const detail::TileOrder& order, detail::RingState& ring) : order_(order), ring_(&ring) {}
    /// Returns the first place.
    TESSERA_TILE Iterator begin() const
    {
#ifdef __CUDA_ARCH__
        return Iterator(order_, *ring_, blockIdx.x, gridDim.x);
#else
        return Iterator(order_, *ring_, 0, order_.count());  // a plan is made of the first alone
#endif
    }
    /// Returns the end.
    TESSERA_TILE End end() const { return {}; }

private:
    detail::TileOrder order_;
    detail::RingState* ring_;
};

namespace detail {

template <class X>
inline constexpr bool is_place = false;
template <class Machine, int Rows, int Columns>
inline constexpr bool is_place<Place<Machine, Rows, Columns>> = true;

/// True if X is a view of elements T, or becomes one.
template <class X, class T, class Order>
concept ViewOf =
    std::is_convertible_v<const X&, MatrixView<T, Order>> || std::is_convertible_v<const X&, BatchView<T, Order>>;

/// Facts of views, for sentences.
template <class X>
struct view_facts {
    static constexpr bool is_view = false;
};
template <class T, class Order>
struct view_facts<MatrixView<T, Order>> {
    static constexpr bool is_view = true;
    using element = T;
    using order = Order;
};
template <class T, class Order>
struct view_facts<BatchView<T, Order>> : view_facts<MatrixView<T, Order>> {};

/// Says why an input or output of elements T is no view of an X.
template <class X, class T, class Order>
constexpr void refuse_as_matrix()
{
    using Facts = view_facts<X>;
    if constexpr (!Facts::is_view) {
        static_assert(
            tessera::detail::always_false<X>,
            "tessera: an input or output views a MatrixView or a BatchView: pass buffer.matrix(rows, columns)");
    } else if constexpr (!std::is_same_v<std::remove_const_t<typename Facts::element>, std::remove_const_t<T>>) {
        static_assert(tessera::detail::always_false<X>,
                      "tessera: the matrix has other elements than its input or output: name its type, Input<T, Rows, "
                      "Columns>; as_tf32() views float as tf32");
    } else if constexpr (!std::is_same_v<typename Facts::order, Order>) {
        static_assert(
            tessera::detail::always_false<X>,
            "tessera: the matrix has another storage order than its input or output: name its order, Input<T, Rows, "
            "Columns, ColumnMajor>");
    } else {
        static_assert(
            tessera::detail::always_false<X>,
            "tessera: an output cannot be a view of const elements: take the view from a buffer that is not const");
    }
}

/// Checks the parameters of an input or output.
template <class T, int Rows, int Columns>
constexpr bool require_tiles()
{
    static_assert(!std::is_const_v<T>,
                  "tessera: the element type of an input or output has no const: Input<bf16, 128, 64>");
    static_assert(MatrixElement<T>,
                  "tessera: an input or output has elements of type f32, f16, bf16, tf32, f8e4m3 or f8e5m2");
    static_assert(Rows > 0 && Columns > 0, "tessera: a tile has at least one row and one column");
    return true;
}

/// Matrices of one shape in global memory.
template <class T, class Order>
struct Memory {
    static constexpr bool row_major = std::is_same_v<Order, RowMajor>;

    T* data = nullptr;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t leading_dimension = 0;
    std::int64_t batches = 1;
    std::int64_t batch_stride = 0;  // elements
    int device = -1;
    bool in_vectors = false;  // lines begin at multiples of 16 bytes

    /// The number of the matrix for a place in batch `batch`: a single matrix is that of all.
    TESSERA_TILE std::int64_t batch_of(std::uint32_t batch) const { return batches == 1 ? 0 : batch; }
    TESSERA_TILE T* at(std::int64_t batch, std::int64_t row, std::int64_t column) const
    {
        return data + batch * batch_stride +
               (row_major ? row * leading_dimension + column : column * leading_dimension + row);
    }
};

template <class T, class Element, class Order>
Memory<T, Order> memory_of(const MatrixView<Element, Order>& view, std::int64_t batches = 1,
                           std::int64_t batch_stride = 0)
{
    const bool single_line = (Memory<T, Order>::row_major ? view.rows() : view.columns()) <= 1;
    const auto stride = static_cast<std::uint64_t>(view.leading_dimension()) * sizeof(T);
    const auto from_batch = static_cast<std::uint64_t>(batch_stride) * sizeof(T);
    return {.data = view.data(),
            .rows = view.rows(),
            .columns = view.columns(),
            .leading_dimension = view.leading_dimension(),
            .batches = batches,
            .batch_stride = batch_stride,
            .device = view.device(),
            .in_vectors = reinterpret_cast<std::uintptr_t>(view.data()) % 16 == 0 && from_batch % 16 == 0 &&
                          (single_line || stride % 16 == 0)};
}
template <class T, class Element, class Order>
Memory<T, Order> memory_of(const BatchView<Element, Order>& view, const std::source_location& caller)
{
    const bool is_one_level = view.outer_count() == 1 || view.outer_stride() == view.count() * view.stride();
    if (!is_one_level) {
        tessera::detail::raise(
            ErrorCode::invalid_argument, "tile::Input", caller,
            "a tile program takes batches at one distance: this view has groups of batches at another",
            "one launch for each group");
    }
    return memory_of<T>(view.first(), view.total_count(), view.total_count() == 1 ? 0 : view.stride());
}

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

/// The part of a matrix that a tile covers.
template <class T, class Order>
struct Window {
    T* first;                        // element (0, 0) of the tile
    std::int64_t leading_dimension;  // of the matrix
    int rows;                        // that the matrix has of the tile
    int columns;

    __device__ Window(const Memory<T, Order>& memory, const Spot& spot, int tile_rows, int tile_columns)
        : first(memory.at(spot.batch, spot.row, spot.column)),
          leading_dimension(memory.leading_dimension),
          rows(static_cast<int>(::min(memory.rows - spot.row, static_cast<std::int64_t>(tile_rows)))),
          columns(static_cast<int>(::min(memory.columns - spot.column, static_cast<std::int64_t>(tile_columns))))
    {}
    __device__ bool has(int row, int column) const { return row < rows && column < columns; }
    __device__ T* at(int row, int column) const
    {
        return Memory<T, Order>::row_major ? first + (row * leading_dimension + column)
                                           : first + (column * leading_dimension + row);
    }
};

/// The vectors of a thread's values that one instruction moves: of at most 16 bytes.
template <class T, class Layout>
struct VectorsOf {
    static constexpr int bytes = Layout::vector * static_cast<int>(sizeof(T));
    static constexpr int length = bytes > 16 ? 16 / static_cast<int>(sizeof(T)) : Layout::vector;
    static constexpr int count = Layout::registers / length;
    using Vector = Neighbours<T, length>;
};

/// Loads a thread's values of a tile.
template <class T, int R, int C, class Layout, class Element, class Order>
__device__ __forceinline__ void load_values(Tile<T, R, C, Layout>& tile, const Memory<Element, Order>& memory,
                                            const Spot& spot, T outside)
{
    auto& values = Access::values(tile);
    const Window<Element, Order> window(memory, spot, R, C);
    if constexpr (requires { Layout::vector; } && Memory<Element, Order>::row_major) {
        using Vectors = VectorsOf<T, Layout>;
        using Vector = typename Vectors::Vector;
        if (memory.in_vectors && memory.columns % Vectors::length == 0) {
            Vector vectors[Vectors::count];  // all are under way before the first is used
#pragma unroll
            for (int i = 0; i < Vectors::count; ++i) {
                const int first = i * Vectors::length;
#pragma unroll
                for (int j = 0; j < Vectors::length; ++j) {
                    vectors[i].of[j] = outside;
                }
                if (Layout::exists(first) && window.has(Layout::row(first), Layout::column(first))) {
                    vectors[i] = Vector::load(window.at(Layout::row(first), Layout::column(first)));
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

/// A tile as it passes through a slot of the ring: its rows, one after the other.
template <class T, int R, int C, class Order>
struct PassingTile {
    static constexpr int row_bytes = C * static_cast<int>(sizeof(T));
    static constexpr int bytes = R * row_bytes;
    static constexpr bool exists = std::is_same_v<Order, RowMajor> && row_bytes % 16 == 0 && bytes <= 64 * 1024;

    /// True if all rows are whole pieces of 16 bytes.
    template <class Element>
    static bool can_pass(const Memory<Element, Order>& memory)
    {
        return exists && memory.in_vectors && memory.columns * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
    }
};

/// Asks for a tile, row by row, for the ring's next slot. Called by the whole warp that loads.
template <class T, int R, int C, class Element, class Order>
__device__ __forceinline__ void request_values(RingState& ring, const Memory<Element, Order>& memory, const Spot& spot)
{
    using Passing = PassingTile<T, R, C, Order>;
    const Window<Element, Order> window(memory, spot, R, C);
    wait_until_empty(ring);
    if (elect_one()) {
        const Barrier full(ring.barriers->full[ring.slot], *ring.published);
        const int rows = window.rows > 0 && window.columns > 0 ? window.rows : 0;
        const auto row_bytes = static_cast<std::uint32_t>(window.columns * static_cast<int>(sizeof(T)));
        full.arrive_and_expect(static_cast<std::uint32_t>(rows) * row_bytes);
        auto* const to = static_cast<std::byte*>(__cvta_shared_to_generic(slot_address(ring)));
        if (rows > 0 && window.columns == C && window.leading_dimension == C) {
            cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, to, window.first,
                                     static_cast<std::uint32_t>(rows) * row_bytes, full.bytes().word());
        } else {
#pragma unroll 1
            for (int row = 0; row < rows; ++row) {
                cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global,
                                         to + row * Passing::row_bytes, window.at(row, 0), row_bytes,
                                         full.bytes().word());
            }
        }
    }
    __syncwarp();
    advance(ring);
}

/// Reads a thread's values of a tile from the ring's next slot, and frees it.
template <class T, int R, int C, class Layout, class Element, class Order>
__device__ __forceinline__ void receive_values(Tile<T, R, C, Layout>& tile, RingState& ring,
                                               const Memory<Element, Order>& memory, const Spot& spot, T outside)
{
    using Vectors = VectorsOf<T, Layout>;
    using Vector = typename Vectors::Vector;
    const Window<Element, Order> window(memory, spot, R, C);
    const bool inside = window.rows == R && window.columns == C;
    wait_until_full(ring);
    const auto* const from = static_cast<const T*>(__cvta_shared_to_generic(slot_address(ring)));
    auto& values = Access::values(tile);
#pragma unroll
    for (int i = 0; i < Vectors::count; ++i) {
        const int first = i * Vectors::length;
        Vector vector;
#pragma unroll
        for (int j = 0; j < Vectors::length; ++j) {
            vector.of[j] = outside;
        }
        if (Layout::exists(first) && (inside || window.has(Layout::row(first), Layout::column(first)))) {
            vector = Vector::load(from + Layout::row(first) * C + Layout::column(first));
        }
#pragma unroll
        for (int j = 0; j < Vectors::length; ++j) {
            values[first + j] = vector.of[j];
        }
    }
    release(ring, ring.slot);
    advance(ring);
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
template <class T, int R, int C, int WarpsM, int WarpsN, class Order>
__device__ __forceinline__ void store_values(const Tile<T, R, C, Fragments<R, C, WarpsM, WarpsN>>& tile,
                                             const Memory<T, Order>& memory, const Spot& spot)
{
    using Layout = Fragments<R, C, WarpsM, WarpsN>;
    const auto& values = Access::values(tile);
    const Window<T, Order> window(memory, spot, R, C);
    const bool inside = window.rows == R && window.columns == C;
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

template <class T, int R, int C, class Layout, class Order>
__device__ __forceinline__ void store_values(const Tile<T, R, C, Layout>& tile, const Memory<T, Order>& memory,
                                             const Spot& spot)
{
    const auto& values = Access::values(tile);
    const Window<T, Order> window(memory, spot, R, C);
    if constexpr (requires { Layout::vector; } && Memory<T, Order>::row_major) {
        using Vectors = VectorsOf<T, Layout>;
        using Vector = typename Vectors::Vector;
        if (memory.in_vectors && memory.columns % Vectors::length == 0) {
#pragma unroll
            for (int i = 0; i < Vectors::count; ++i) {
                const int first = i * Vectors::length;
                Vector vector;
#pragma unroll
                for (int j = 0; j < Vectors::length; ++j) {
                    vector.of[j] = values[first + j];
                }
                if (Layout::exists(first) && window.has(Layout::row(first), Layout::column(first))) {
                    vector.store(window.at(Layout::row(first), Layout::column(first)));
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

/// How a tile is stored in shared memory: in lines of at most 128 bytes along its contiguous direction, swizzled. A *block* has
/// all lines of one such piece.
template <class T, int Rows, int Columns, class Order>
struct StagedTile {
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
    using Map =
        TensorMap<T, Box<static_cast<unsigned>(exists ? in_line : 16), static_cast<unsigned>(box_lines), 1>, swizzle>;
};

}  // namespace detail

/// A sequence of tiles of an input along its rows or its columns. Made by `Input::row` and `Input::column`.
template <class View>
class Band {
public:
    /// For the library.
    TESSERA_TILE Band(const View& view, const detail::Spot& first, bool along_columns, std::int64_t end)
        : view_(&view), first_(first), end_(end), along_columns_(along_columns)
    {}

    /// Returns the band up to element `end` of the input, along it: later ones are left out.
    TESSERA_TILE Band until(std::int64_t end) const
    {
        return Band(*view_, first_, along_columns_, end < end_ ? end : end_);
    }

    /// For the library: the input.
    TESSERA_TILE const View& view() const { return *view_; }
    /// For the library: elements along the band.
    TESSERA_TILE std::int64_t extent() const { return end_ > 0 ? end_ : 0; }
    /// For the library: the number of tiles.
    TESSERA_TILE int steps() const
    {
        const int length = along_columns_ ? View::columns : View::rows;
        return static_cast<int>((extent() + length - 1) / length);
    }
    /// For the library: the first element of a tile.
    TESSERA_TILE detail::Spot at(int step) const
    {
        return {first_.batch, first_.row + (along_columns_ ? 0 : std::int64_t{step} * View::rows),
                first_.column + (along_columns_ ? std::int64_t{step} * View::columns : 0)};
    }

private:
    const View* view_;
    detail::Spot first_;
    std::int64_t end_;
    bool along_columns_;
};

/// A matrix that a program reads, cut into tiles of (Rows, Columns).
///
/// @code{.cpp}
/// tile::Input<bf16, 128, 64> x = a;  // of a MatrixView or BatchView
/// @endcode
/// @par Lifetime
/// The memory must outlive the launch.
/// @tparam T        the element type
/// @tparam Rows     of a tile; 1 for a row vector that meets each row of the output
/// @tparam Columns  of a tile; 1 for a column vector
/// @tparam Order    RowMajor or ColumnMajor
template <class T, int Rows, int Columns, class Order = RowMajor>
class Input {
    static_assert(detail::require_tiles<T, Rows, Columns>());

public:
    using element_type = T;                                      ///< of the matrix
    static constexpr int rows = Rows;                            ///< of a tile
    static constexpr int columns = Columns;                      ///< of a tile
    using Staged = detail::StagedTile<T, Rows, Columns, Order>;  ///< for the library

    /// An empty matrix.
    Input() = default;
    /// Views a matrix. On a GPU with TMA, encodes its tensor map.
    /// @throws Error  as `TensorMap::encode`
    Input(const MatrixView<const T, Order>& matrix, std::source_location caller = std::source_location::current())
        : memory_(detail::memory_of<const T>(matrix))
    {
        encode(caller);
    }
    /// Views a matrix that can be written, too.
    Input(const MatrixView<T, Order>& matrix, std::source_location caller = std::source_location::current())
        : Input(MatrixView<const T, Order>(matrix), caller)
    {}
    /// Views a batch of matrices: place (row, column) of batch i has tiles of matrix i.
    /// @throws Error  `invalid_argument` for a batch of two levels with a distance of their own, and as `TensorMap::encode`
    Input(const BatchView<const T, Order>& matrices, std::source_location caller = std::source_location::current())
        : memory_(detail::memory_of<const T>(matrices, caller))
    {
        encode(caller);
    }
    /// Views a batch of matrices that can be written, too.
    Input(const BatchView<T, Order>& matrices, std::source_location caller = std::source_location::current())
        : Input(BatchView<const T, Order>(matrices), caller)
    {}

    /// Refuses to compile what is no matrix of such elements.
    template <class Other>
        requires(!detail::ViewOf<Other, const T, Order>)
    Input(const Other&)
    {
        detail::refuse_as_matrix<Other, T, Order>();
    }

    /// Returns the tile at a place, or at a transposed place. A vector's is the part that meets the place's rows or columns.
    /// @param outside  what elements outside of the matrix are
    template <class Machine, int PlaceRows, int PlaceColumns>
    TESSERA_TILE auto load(const Position<Machine, PlaceRows, PlaceColumns>& at, float outside = 0.0F) const
    {
        static_assert(
            (Rows == PlaceRows || Rows == 1) && (Columns == PlaceColumns || Columns == 1),
            "tessera: an input is loaded at a place of its own shape: the input's tiles have other rows or columns "
            "than the output's");
        using Layout = typename detail::Layouts<Machine>::template Of<detail::Striped<Rows, Columns, Machine::threads>>;
        using Passing = detail::PassingTile<T, Rows, Columns, Order>;
        Tile<T, Rows, Columns, Layout> tile;
        const detail::Spot spot{memory_.batch_of(at.batch()), Rows == 1 && PlaceRows != 1 ? 0 : at.first_row(),
                                Columns == 1 && PlaceColumns != 1 ? 0 : at.first_column()};
        if constexpr (Machine::role == detail::Role::plan) {
            plan_load();
        } else if constexpr (Machine::has_ring && Passing::exists) {
            if (at.ring().has_loads) {
                if constexpr (Machine::role == detail::Role::load) {
                    detail::request_values<T, Rows, Columns>(at.ring(), memory_, spot);
                } else {
                    detail::receive_values(tile, at.ring(), memory_, spot, T(outside));
                }
                return tile;
            }
        }
        if constexpr (Layout::registers > 0) {
            detail::load_values(tile, memory_, spot, T(outside));
        }
        return tile;
    }

    /// Refuses to compile: says where a tile is loaded.
    template <class At>
        requires(!detail::is_place<At>)
    TESSERA_TILE auto load(const At&, float /*outside*/ = 0.0F) const
    {
        static_assert(tessera::detail::always_false<At>,
                      "tessera: a tile is loaded at a place, one of output.tiles(cta)");
    }
    /// Refuses to compile: an input is only read.
    template <class At, class X>
    TESSERA_TILE auto store(const At&, const X&) const
    {
        static_assert(tessera::detail::always_false<At>,
                      "tessera: an input is only read: tiles are stored to an Output");
    }
    /// Refuses to compile: an input divides no work.
    template <class Any>
    TESSERA_TILE auto tiles(const Any&) const
    {
        static_assert(tessera::detail::always_false<Any>,
                      "tessera: an input does not divide the work between CTAs, its output does: output.tiles(cta)");
    }

    /// Returns all tiles beside a place: those of its rows.
    template <class Machine, int PlaceRows, int PlaceColumns>
    TESSERA_TILE Band<Input> row(const Place<Machine, PlaceRows, PlaceColumns>& at) const
    {
        static_assert(
            Rows == PlaceRows,
            "tessera: the rows of an input's tile and of the output's must be equal: the band would be another's");
        detail::note_matrix(memory_.device, memory_.batches);
        return tiles_of_row(at.tile_row(), memory_.batch_of(at.batch()));
    }
    /// Returns all tiles above and below a place: those of its columns.
    template <class Machine, int PlaceRows, int PlaceColumns>
    TESSERA_TILE Band<Input> column(const Place<Machine, PlaceRows, PlaceColumns>& at) const
    {
        static_assert(
            Columns == PlaceColumns,
            "tessera: the columns of an input's tile and of the output's must be equal: the band would be another's");
        detail::note_matrix(memory_.device, memory_.batches);
        return tiles_of_column(at.tile_column(), memory_.batch_of(at.batch()));
    }
    /// Returns all tiles of a row of tiles.
    /// @param batch  the number of the matrix, which need not be the place's; the batch may have other matrices than the output's. A
    ///               number outside stops the kernel. A single matrix has any number
    TESSERA_TILE Band<Input> row(std::uint32_t tile_row, std::uint32_t batch = 0) const
    {
        return tiles_of_row(tile_row, chosen(batch));
    }
    /// Returns all tiles of a column of tiles.
    /// @param batch  as for `row`
    TESSERA_TILE Band<Input> column(std::uint32_t tile_column, std::uint32_t batch = 0) const
    {
        return tiles_of_column(tile_column, chosen(batch));
    }

    /// For the library.
    TESSERA_TILE const detail::Memory<const T, Order>& memory() const { return memory_; }
    /// For the library.
    TESSERA_TILE const AnyTensorMap<3>& map() const { return map_; }
    /// Returns true if TMA can load tiles.
    TESSERA_TILE bool has_map() const { return has_map_; }

private:
    TESSERA_TILE void plan_load() const
    {
        detail::note_matrix(memory_.device, memory_.batches);
#ifndef __CUDA_ARCH__
        using Passing = detail::PassingTile<T, Rows, Columns, Order>;
        detail::planning()->note_load(static_cast<std::size_t>(Passing::bytes), Passing::can_pass(memory_));
#endif
    }
    TESSERA_TILE Band<Input> tiles_of_row(std::uint32_t tile_row, std::int64_t matrix) const
    {
        return {*this, {matrix, std::int64_t{tile_row} * Rows, 0}, true, memory_.columns};
    }
    TESSERA_TILE Band<Input> tiles_of_column(std::uint32_t tile_column, std::int64_t matrix) const
    {
        return {*this, {matrix, 0, std::int64_t{tile_column} * Columns}, false, memory_.rows};
    }
    /// The matrix that a program chooses by number.
    TESSERA_TILE std::int64_t chosen(std::uint32_t batch) const
    {
        detail::note_matrix(memory_.device, 1);
#ifdef __CUDA_ARCH__
        tessera::detail::trap_unless(memory_.batches == 1 || batch < memory_.batches);
#endif
        return memory_.batch_of(batch);
    }
    void encode(const std::source_location& caller)
    {
        if constexpr (Staged::exists) {
            if (memory_.device < 0 || memory_.rows == 0 || memory_.columns == 0 || !memory_.in_vectors) {
                return;
            }
            const Device device(memory_.device, caller);
            if (!device.properties().has_tensor_maps) {
                return;
            }
            const auto inner = static_cast<std::uint64_t>(Staged::row_major ? memory_.columns : memory_.rows);
            const auto outer = static_cast<std::uint64_t>(Staged::row_major ? memory_.rows : memory_.columns);
            // A single line may have any leading dimension; TMA wants a multiple of 16 bytes.
            const std::uint64_t line = outer == 1 ? (inner * sizeof(T) + 15) / 16 * 16
                                                  : static_cast<std::uint64_t>(memory_.leading_dimension) * sizeof(T);
            const auto matrices = static_cast<std::uint64_t>(memory_.batches);
            const std::uint64_t matrix =
                matrices == 1 ? line * outer : static_cast<std::uint64_t>(memory_.batch_stride) * sizeof(T);
            if (matrix == 0) {
                return;  // one matrix for all of a batch
            }
            map_ = Staged::Map::encode(device, {memory_.data, {inner, outer, matrices}, {line, matrix}}, {}, caller);
            has_map_ = true;
        }
    }

    AnyTensorMap<3> map_;
    detail::Memory<const T, Order> memory_;
    bool has_map_ = false;
};

/// A matrix that a program writes, cut into tiles of (Rows, Columns).
/// @tparam T        the element type
/// @tparam Rows     of a tile
/// @tparam Columns  of a tile
/// @tparam Order    RowMajor or ColumnMajor
template <class T, int Rows, int Columns, class Order = RowMajor>
class Output {
    static_assert(detail::require_tiles<T, Rows, Columns>());

public:
    using element_type = T;                  ///< of the matrix
    static constexpr int rows = Rows;        ///< of a tile
    static constexpr int columns = Columns;  ///< of a tile

    /// An empty matrix.
    Output() = default;
    /// Views a matrix.
    Output(const MatrixView<T, Order>& matrix) : Output(detail::memory_of<T>(matrix)) {}
    /// Views a batch of matrices.
    /// @throws Error  `invalid_argument` for a batch of two levels with a distance of their own
    Output(const BatchView<T, Order>& matrices, std::source_location caller = std::source_location::current())
        : Output(detail::memory_of<T>(matrices, caller))
    {}

    /// Refuses to compile what is no matrix of such elements that can be written.
    template <class Other>
        requires(!detail::ViewOf<Other, T, Order>)
    Output(const Other&)
    {
        detail::refuse_as_matrix<Other, T, Order>();
    }

    /// Returns the places of the calling CTA. Each tile is at one place of one CTA.
    template <class Machine>
    TESSERA_TILE PlaceRange<Machine, Rows, Columns> tiles(Cta<Machine> cta) const
    {
        return places(cta, false);
    }
    /// Returns the same places in another order: from the last row of tiles of all matrices of a batch to the first. For work that
    /// grows with the row, as causal attention's: the long tiles come first, and CTAs end at the same time.
    template <class Machine>
    TESSERA_TILE PlaceRange<Machine, Rows, Columns> tiles_from_last_row(Cta<Machine> cta) const
    {
        return places(cta, true);
    }

    /// Stores a tile at a place. Elements outside of the matrix are dropped.
    template <class Machine, int PlaceRows, int PlaceColumns, detail::TileLike X>
    TESSERA_TILE void store(const Place<Machine, PlaceRows, PlaceColumns>& at, const X& x) const
    {
        using Facts = detail::facts_of<X>;
        static_assert(Rows == PlaceRows && Columns == PlaceColumns,
                      "tessera: a tile is stored at a place of its output's shape: others belong to other CTAs");
        static_assert(Facts::rows == Rows && Facts::columns == Columns,
                      "tessera: the tile that is stored has other rows or columns than the output's tiles");
        static_assert(std::is_same_v<typename Facts::element, T>,
                      "tessera: the tile's elements are not the output's: convert<>() it first");
        detail::note_matrix(memory_.device, memory_.batches);
        if constexpr (Facts::layout::registers > 0) {
            detail::store_values(detail::settled(x), memory_, {at.batch(), at.first_row(), at.first_column()});
        }
    }
    /// Refuses to compile for a transposed place.
    template <class Machine, int PlaceRows, int PlaceColumns, detail::TileLike X>
    TESSERA_TILE void store(const Position<Machine, PlaceRows, PlaceColumns>& /*at*/, const X& /*x*/) const
    {
        static_assert(
            tessera::detail::always_false<X>,
            "tessera: a tile is stored at a place, and not at its transposed position: that is another CTA's");
    }

    /// Refuses to compile: says what is stored, and where.
    template <class At, class X>
        requires(!(detail::is_place<At> && detail::TileLike<X>))
    TESSERA_TILE auto store(const At&, const X&) const
    {
        static_assert(detail::is_place<At>, "tessera: a tile is stored at a place, one of output.tiles(cta)");
        static_assert(detail::TileLike<X>,
                      "tessera: what is stored is a tile: full<T, Rows, Columns>(cta, value) is one of a single value");
    }
    /// Refuses to compile: an output is only written.
    template <class At>
    TESSERA_TILE auto load(const At&, float /*outside*/ = 0.0F) const
    {
        static_assert(tessera::detail::always_false<At>,
                      "tessera: an output is only written: tiles are loaded from an Input");
    }

    /// For the library.
    TESSERA_TILE const detail::Memory<T, Order>& memory() const { return memory_; }

private:
    template <class Machine>
    TESSERA_TILE PlaceRange<Machine, Rows, Columns> places(Cta<Machine> cta, bool from_last_row) const
    {
#ifndef __CUDA_ARCH__
        const std::int64_t count = tile_rows() * tile_columns() * memory_.batches;
        if (detail::Plan* const plan = detail::planning()) {
            plan->batches = plan->tiles < 0 ? memory_.batches : plan->batches;
            if (plan->tiles >= 0 && plan->tiles != count) {
                plan->unequal_tiles[0] = plan->tiles;
                plan->unequal_tiles[1] = count;
            }
            plan->tiles = plan->tiles < 0 ? count : plan->tiles;
        }
#endif
        const detail::TileOrder order{&raster_, static_cast<std::uint32_t>(tile_rows()),
                                      static_cast<std::uint32_t>(tile_columns()),
                                      static_cast<std::uint32_t>(memory_.batches), from_last_row};
        return {order, cta.ring()};
    }

    /// Tile rows of a raster group: CTAs that run at the same time share rows and columns of the inputs in L2.
    static constexpr std::uint32_t raster_band = 8;

    explicit Output(const detail::Memory<T, Order>& memory)
        : memory_(memory),
          raster_(static_cast<std::uint32_t>(tile_rows()), static_cast<std::uint32_t>(tile_columns()), raster_band)
    {}
    TESSERA_TILE std::int64_t tile_rows() const { return (memory_.rows + Rows - 1) / Rows; }
    TESSERA_TILE std::int64_t tile_columns() const { return (memory_.columns + Columns - 1) / Columns; }

    detail::Memory<T, Order> memory_;
    TileRaster raster_;
};

}  // namespace tessera::tile
