#pragma once

/// @file
/// @ingroup tile_gemm
/// @brief Operands that are read where sums are, and never become tiles. Private to tessera/tile.
///
/// A tile that is loaded has a layout of its own, and meets sums through shared memory. Next to sums that fill the registers, that
/// spills. So a matrix is read in the sums' layout, a few values ahead of their use, and vectors wait in shared memory.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>

#include "tessera/tile/exchange.cuh"
#include "tessera/tile/lane_fragments.cuh"
#include "tessera/tile/memory.cuh"
#include "tessera/tile/view.cuh"

namespace tessera::tile::detail {

/// True for layouts in which values 2 * i and 2 * i + 1 of a thread are neighbours in a row.
template <class Layout>
inline constexpr bool has_pairs = is_fragments<Layout>;
template <int R, int C, int WarpsN>
inline constexpr bool has_pairs<LaneFragments<R, C, WarpsN>> = true;

/// Asks for the line of L2 that has an address. A hint.
__device__ __forceinline__ void prefetch_line(const void* address)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));  // not in cuda::ptx
}

inline constexpr int pairs_in_flight = 8;  // of a thread and a matrix; as many more are in use

/// A vector beside a tile in Layout, in shared memory: a value for each row or column.
template <class Layout, Edges At, class T, int R, int C, class Order>
class VectorBeside {
    static_assert(R == 1 || C == 1);

public:
    static constexpr int bytes = (R * C * static_cast<int>(sizeof(T)) + 15) / 16 * 16;

    /// Copies the vector to `shared`, where the threads that compute read it after they have met.
    __device__ VectorBeside(const Memory<const T, Order>& memory, const Spot& spot, std::byte* shared)
        : values_(reinterpret_cast<T*>(shared))
    {
        const auto window = window_of<At, R, C>(memory, spot);
        for (int i = static_cast<int>(threadIdx.x); i < R * C; i += Layout::threads) {
            const int row = C == 1 ? i : 0;
            const int column = C == 1 ? 0 : i;
            values_[i] = window.has(row, column) ? *window.at(row, column) : T{};
        }
    }
    __device__ bool has_pairs_in_memory() const { return true; }
    template <bool InMemory, int Count>
    __device__ void read_ahead(int, int) const
    {}
    __device__ T value(int i) const { return values_[C == 1 ? Layout::row(i) : Layout::column(i)]; }
    /// Returns values i and i + 1.
    __device__ Neighbours<T, 2> pair(int, int, int i) const
    {
        if constexpr (C == 1) {
            const T both = value(i);
            return {{both, both}};
        } else {
            return Neighbours<T, 2>::load(values_ + Layout::column(i));
        }
    }

private:
    T* values_;
};

/// A matrix beside a tile in Layout. Outside of it is what its last row or column has: nobody stores what comes of it.
template <class Layout, Edges At, class T, int R, int C, class Order>
class MatrixBeside {
public:
    static constexpr int bytes = 0;  // of shared memory

    /// Asks for the tile's lines in L2.
    __device__ MatrixBeside(const Memory<const T, Order>& memory, const Spot& spot)
        : window_(memory, spot), pairs_(row_major && memory.in_vectors && memory.columns % 2 == 0)
    {
        constexpr int line = 128 / static_cast<int>(sizeof(T));
        const int along = row_major ? window_.columns : window_.rows;
        const int lines = row_major ? window_.rows : window_.columns;
        constexpr int pieces = ((row_major ? C : R) + line - 1) / line;
        for (int i = static_cast<int>(threadIdx.x); i < lines * pieces; i += Layout::threads) {
            const int at = i % pieces * line;
            if (at < along) {
                prefetch_line(row_major ? window_.at(i / pieces, at) : window_.at(at, i / pieces));
            }
        }
    }

    /// Returns true if neighbours in a row can be read by one instruction.
    __device__ bool has_pairs_in_memory() const { return pairs_; }
    __device__ T value(int i) const { return *window_.at(row(i), column(i, 1)); }
    /// Starts to read pairs from the `first` on into one of two sets of registers.
    template <bool InMemory, int Count>
    __device__ __forceinline__ void read_ahead(int set, int first) const
    {
#pragma unroll
        for (int j = 0; j < Count; ++j) {
            const int i = 2 * (first + j);
            if (i < Layout::registers) {
                if constexpr (InMemory) {
                    ahead_[set][j] = Neighbours<T, 2>::load(window_.at(row(i), column(i, 2)));
                } else {
                    ahead_[set][j] = {{value(i), value(i + 1)}};
                }
            }
        }
    }
    /// Returns pair `j` of a set.
    __device__ Neighbours<T, 2> pair(int set, int j, int) const { return ahead_[set][j]; }

private:
    static constexpr bool row_major = Memory<const T, Order>::row_major;

    __device__ int row(int i) const
    {
        return At.rows == Edge::ragged ? ::min(Layout::row(i), window_.rows - 1) : Layout::row(i);
    }
    /// The column of value i, or the last one from which `count` are inside.
    __device__ int column(int i, int count) const
    {
        return At.columns == Edge::ragged ? ::min(Layout::column(i), window_.columns - count) : Layout::column(i);
    }

    Window<At, R, C, const T, Order> window_;
    bool pairs_;
    mutable Neighbours<T, 2> ahead_[2][pairs_in_flight];  // registers
};

/// One of several inputs. A class of all of them, unlike a tuple, can be copied to the GPU.
template <std::size_t Index, class Type>
struct NumberedInput {
    Type input;
};
template <class Indices, class... Types>
struct Inputs;
template <std::size_t... Indices, class... Types>
struct Inputs<std::index_sequence<Indices...>, Types...> : NumberedInput<Indices, Types>... {
    /// Returns visit(input, ...).
    template <class Visit>
    TESSERA_TILE auto all(Visit visit) const
    {
        return visit(static_cast<const NumberedInput<Indices, Types>&>(*this).input...);
    }
};

/// True for the operands of a program that are vectors.
template <class Input>
inline constexpr bool is_vector_input = Input::rows == 1 || Input::columns == 1;

/// How an input is read beside a tile in Layout.
template <class Layout, Edges At, class Input>
struct beside_of;
template <class Layout, Edges At, class T, int R, int C, class Order, class E>
struct beside_of<Layout, At, Input<T, R, C, Order, E>> {
    static constexpr bool is_vector = is_vector_input<Input<T, R, C, Order, E>>;
    using type = std::conditional_t<is_vector, VectorBeside<Layout, At, T, R, C, Order>,
                                    MatrixBeside<Layout, At, T, R, C, Order>>;

    __device__ static type make(const Input<T, R, C, Order, E>& input, const Spot& spot, [[maybe_unused]] int& offset)
    {
        if constexpr (is_vector) {
            std::byte* const shared = tile_shared_memory + offset;
            offset += type::bytes;
            return type(input.memory(), spot, shared);
        } else {
            return type(input.memory(), spot);
        }
    }
};

/// What was begun for operands, and whether threads must meet before they read it.
template <bool HasVectors, class All>
struct PreparedBeside {
    All all;
};

/// Begins to read operands, before the sums beside which they are used are added up: vectors go to shared memory, a matrix to L2.
/// Threads without sums have none. Nothing else may use the exchanges' shared memory until `finished_beside`.
template <class Sum, class Machine, int PlaceRows, int PlaceColumns, bool Transposed, class... Extras>
TESSERA_TILE auto prepared_beside(const Position<Machine, PlaceRows, PlaceColumns, Transposed>& at,
                                  const Extras&... inputs)
{
    using Layout = typename facts_of<Sum>::layout;
    constexpr bool has_vectors = (is_vector_input<Extras> || ...);
    need_scratch<Layout,
                 (std::size_t{beside_of<PresentLayout<Layout>, edges_of<Machine, Extras>(), Extras>::type::bytes} +
                  ... + 0)>();
    const auto with = [&](const auto&... spots) {
        if constexpr (Layout::registers > 0) {
            using All = Inputs<std::index_sequence_for<Extras...>,
                               typename beside_of<Layout, edges_of<Machine, Extras>(), Extras>::type...>;
            if constexpr (has_vectors) {
                meet<Layout::threads>();  // all have read what was there before
            }
            [[maybe_unused]] int offset = 0;
            return PreparedBeside<has_vectors, All>{
                {{beside_of<Layout, edges_of<Machine, Extras>(), Extras>::make(inputs, spots, offset)}...}};
        } else {
            return PreparedBeside<has_vectors, Inputs<std::index_sequence<>>>{};
        }
    };
    return with(spot_at(inputs, at)...);
}

/// Replaces each sum by function(value, row, column, operands ...), with the row and column of the matrix.
template <class D, int R, int C, class Layout, class Function, class Place, class... Extras>
__device__ __forceinline__ void finish_beside(Function& function, const Tile<float, R, C, Layout>& sums,
                                              Tile<D, R, C, Layout>& result, const Place& at, const Extras&... extras)
{
    // No control flow depends on the row here, so that pairs of CTAs need not be refused.
    const auto first_row = static_cast<int>(at.where().first_row);
    const auto first_column = static_cast<int>(at.where().first_column);
    const auto finish_value = [&](int i, const auto&... values) {
        const float value =
            function(Access::values(sums)[i], first_row + Layout::row(i), first_column + Layout::column(i), values...);
        Access::values(result)[i] = D(value);
    };
    [[maybe_unused]] const auto finish_pairs = [&](auto in_memory) {
        constexpr bool by_pairs = decltype(in_memory)::value;
        constexpr int sets = (Layout::registers / 2 + pairs_in_flight - 1) / pairs_in_flight;
        (extras.template read_ahead<by_pairs, pairs_in_flight>(0, 0), ...);
        unrolled<sets>([&](int set) {
            if (set + 1 < sets) {
                (extras.template read_ahead<by_pairs, pairs_in_flight>((set + 1) % 2, (set + 1) * pairs_in_flight),
                 ...);
            }
            unrolled<pairs_in_flight>([&](int j) {
                const int i = 2 * (set * pairs_in_flight + j);
                const auto with = [&](const auto&... pairs) {
                    finish_value(i, pairs.of[0]...);
                    finish_value(i + 1, pairs.of[1]...);
                };
                if (i < Layout::registers) {
                    with(extras.pair(set % 2, j, i)...);
                }
            });
        });
    };
    if constexpr (has_pairs<Layout>) {
        if ((extras.has_pairs_in_memory() && ...)) {
            finish_pairs(std::true_type{});
        } else {
            finish_pairs(std::false_type{});
        }
    } else {
        unrolled<Layout::registers>([&](int i) { finish_value(i, extras.value(i)...); });
    }
}

/// Returns a tile of function(value, row, column, operands ...) for each sum, rounded to D.
template <class D, class Function, class Sum, class Place, bool HasVectors, class All>
TESSERA_TILE auto finished_beside(Function function, const Sum& sum, const Place& at,
                                  const PreparedBeside<HasVectors, All>& prepared)
{
    using Facts = facts_of<Sum>;
    using Layout = typename Facts::layout;
    const auto& sums = settled(sum);
    Tile<D, Facts::rows, Facts::columns, Layout> result;
    if constexpr (Layout::registers > 0) {
        if constexpr (HasVectors) {
            meet<Layout::threads>();  // they are there
        }
        prepared.all.all([&](const auto&... extras) { finish_beside(function, sums, result, at, extras...); });
    }
    return result;
}

}  // namespace tessera::tile::detail
