#pragma once

/// @file
/// @ingroup tile_views
/// @brief `gather`: an input whose rows are those that a vector names.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tessera/detail/refused.hpp"
#include "tessera/detail/trap.hpp"
#include "tessera/tile/memory.cuh"
#include "tessera/tile/numbers.cuh"
#include "tessera/tile/place.cuh"
#include "tessera/tile/view.cuh"

namespace tessera::tile {

/// Rows of an input, in the order of a vector. Made by `gather`.
/// @tparam View    the input
/// @tparam Number  an integer type
template <class View, class Number>
class Gathered {
public:
    using element_type = typename View::element_type;             ///< of the input
    using extents = Extents<any_extent, View::extents::columns>;  ///< for the library
    using Staged = typename View::Staged;                         ///< for the library
    static constexpr int rows = View::rows;                       ///< of a tile
    static constexpr int columns = View::columns;                 ///< of a tile

    /// For the library.
    TESSERA_TILE Gathered(const View& view, const Numbers<Number>& numbers) : view_(&view), numbers_(&numbers)
    {
        detail::note_device(numbers.device());
    }

    /// Returns the tile at a place: row i has row `numbers[i]` of the input, i counted as the output's rows are.
    /// @param outside  what elements outside of the output's rows, or of the input's columns, are
    template <class Machine, int PlaceRows, int PlaceColumns>
    TESSERA_TILE auto load(const Place<Machine, PlaceRows, PlaceColumns>& at, float outside = 0.0F) const
    {
        static_assert(rows == PlaceRows && (columns == PlaceColumns || columns == 1),
                      "tessera: rows that a vector names are loaded at a place of the input's shape: its tiles have "
                      "other rows or columns than the output's");
        using Layout = detail::LoadedLayout<Machine, Gathered>;
        Tile<element_type, rows, columns, Layout> tile;
        const detail::Spot spot = detail::spot_at(*this, at);
        if constexpr (Layout::registers > 0) {
            load_values<detail::edges_of<Machine, Gathered>()>(tile, spot, element_type(outside));
        }
        return tile;
    }

    /// Returns all tiles beside a place: of the rows that the vector names for its rows.
    template <class Machine, int PlaceRows, int PlaceColumns>
    TESSERA_TILE Band<Gathered> row(const Place<Machine, PlaceRows, PlaceColumns>& at) const
    {
        static_assert(
            rows == PlaceRows,
            "tessera: the rows of an input's tile and of the output's must be equal: the band would be another's");
        detail::spot_at(*this, at);
        return {*this,
                {view_->memory().batch_of(at.batch()), at.where().first_row, 0},
                true,
                view_->memory().columns,
                detail::BandKind::of_place_rows};
    }

    /// For the library: as many rows as there are numbers.
    TESSERA_TILE auto memory() const
    {
        auto memory = view_->memory();
        memory.rows = static_cast<std::int64_t>(numbers_->size());
        return memory;
    }
    /// For the library: the input's. TMA does not gather.
    TESSERA_TILE const auto& map() const { return view_->map(); }
    /// For the library.
    TESSERA_TILE bool has_map() const { return false; }
    /// For the library: the row of the input that number `index` names. One that the input does not have stops the kernel.
    TESSERA_TILE std::int64_t row_in_memory(std::int64_t index) const
    {
        const auto row = static_cast<std::int64_t>((*numbers_)[static_cast<std::size_t>(index)]);
#ifdef __CUDA_ARCH__
        tessera::detail::trap_unless(row >= 0 && row < view_->memory().rows);
#endif
        return row;
    }

private:
    template <detail::Edges At, class Layout>
    __device__ void load_values(Tile<element_type, rows, columns, Layout>& tile, const detail::Spot& spot,
                                element_type outside) const
    {
        using Vectors = detail::VectorsOf<element_type, Layout>;
        using Vector = typename Vectors::Vector;
        auto& values = detail::Access::values(tile);
        const auto memory = this->memory();
        const auto window = detail::window_of<At, rows, columns>(memory, spot);
        const bool in_vectors = detail::has_vectors<At, Vectors::length>(memory);
#pragma unroll
        for (int i = 0; i < Vectors::count; ++i) {
            const int first = i * Vectors::length;
            Vector vector;
#pragma unroll
            for (int j = 0; j < Vectors::length; ++j) {
                vector.of[j] = outside;
            }
            const int column = Layout::column(first);
            if (Layout::exists(first) && window.has(Layout::row(first), column)) {
                const element_type* const from =
                    memory.at(spot.batch, row_in_memory(spot.row + Layout::row(first)), spot.column + column);
                if (in_vectors) {
                    vector = Vector::load(from);
                } else {
#pragma unroll
                    for (int j = 0; j < Vectors::length; ++j) {
                        if (window.has(Layout::row(first), column + j)) {
                            vector.of[j] = from[j];
                        }
                    }
                }
            }
#pragma unroll
            for (int j = 0; j < Vectors::length; ++j) {
                values[first + j] = vector.of[j];
            }
        }
    }

    const View* view_;
    const Numbers<Number>* numbers_;
};

/// Returns rows of an input in the order of a vector: row i of it is row `numbers[i]` of the input. It is loaded, or streamed, beside
/// a place. The output has at most as many rows as there are numbers.
///
/// @code{.cpp}
/// const auto tokens = tile::gather(x, token);  // tile::Numbers<int> token: of each row of the output
/// for (auto [a, b] : tile::stream(cta, tokens.row(at), w.column(at))) {
///     sum = mma(a, b, sum);
/// }
/// @endcode
/// A number that is no row of the input stops the kernel. Threads load such rows: a program that streams them multiplies by
/// mma.sync.
/// @par Lifetime
/// The input and the numbers are members of the program.
template <class T, int Rows, int Columns, class Order, class E, class Number>
TESSERA_TILE Gathered<Input<T, Rows, Columns, Order, E>, Number> gather(const Input<T, Rows, Columns, Order, E>& input,
                                                                        const Numbers<Number>& numbers)
{
    static_assert(std::is_same_v<Order, RowMajor>,
                  "tessera: rows are gathered from a row-major input: there, each is in one piece");
    static_assert(std::is_integral_v<Number>, "tessera: rows are named by integers: Numbers<int>");
    return {input, numbers};
}
/// Refuses to compile what are no rows.
template <class X, class Y>
TESSERA_TILE auto gather(const X&, const Y&)
{
    static_assert(tessera::detail::always_false<X, Y>,
                  "tessera: gather(input, numbers) takes rows of an Input that tile::Numbers name");
}

}  // namespace tessera::tile
