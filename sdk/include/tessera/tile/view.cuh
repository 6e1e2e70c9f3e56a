#pragma once

/// @file
/// @ingroup tile_views
/// @brief `Input` and `Output`: matrices in memory, cut into tiles.
///
/// Elements outside of a matrix are loaded as a value of the program's choice, and not stored.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#ifndef __CUDACC_RTC__
#include <source_location>
#endif

#include "tessera/detail/refused.hpp"
#include "tessera/detail/trap.hpp"
#include "tessera/tile/cta.cuh"
#include "tessera/tile/matrix.hpp"
#include "tessera/tile/memory.cuh"
#include "tessera/tile/place.cuh"
#include "tessera/tile/staged_tile.hpp"
#include "tessera/tile/tile.cuh"
#ifndef __CUDACC_RTC__
#include "tessera/tile/view_arguments.hpp"
#endif

namespace tessera::tile {

namespace detail {

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

/// Returns where a view has its tile at a place: a vector's is the part that meets the place's rows or columns.
template <class View, class Machine, int PlaceRows, int PlaceColumns, bool Transposed>
TESSERA_TILE Spot spot_at(const View& view, const Position<Machine, PlaceRows, PlaceColumns, Transposed>& at)
{
    constexpr bool is_row = View::rows == 1 && PlaceRows != 1;
    constexpr bool is_column = View::columns == 1 && PlaceColumns != 1;
    if constexpr (Machine::is_planned) {
        note_matrix<Machine>(view.memory());
        if constexpr (is_whole<Machine, View>) {
            note_whole(view,
                       is_row       ? Along::nothing
                       : Transposed ? Along::columns
                                    : Along::rows,
                       is_column    ? Along::nothing
                       : Transposed ? Along::rows
                                    : Along::columns);
        }
    }
    return {view.memory().batch_of(at.batch()), is_row ? 0 : at.where().first_row,
            is_column ? 0 : at.where().first_column};
}

/// The layout of a tile of a view that is loaded into registers.
template <class Machine, class View>
using LoadedLayout = typename Layouts<Machine>::template Of<Striped<View::rows, View::columns, Machine::threads>>;

/// Which places have the same band. A pair of CTAs has two places, one below the other.
enum class BandKind : std::uint8_t {
    any,              // it is not known
    of_place_rows,    // those beside each other
    of_place_columns  // those above and below each other
};

}  // namespace detail

/// A sequence of tiles of an input along its rows or its columns. Made by `Input::row` and `Input::column`.
template <class View>
class Band {
public:
    /// For the library.
    TESSERA_TILE Band(const View& view, const detail::Spot& first, bool along_columns, std::int64_t end,
                      detail::BandKind kind = detail::BandKind::any)
        : view_(&view), first_(first), end_(end), along_columns_(along_columns), kind_(kind)
    {}

    /// Returns the band up to element `end` of the input, along it: later ones are left out.
    TESSERA_TILE Band until(std::int64_t end) const
    {
        return Band(*view_, first_, along_columns_, end < end_ ? end : end_);
    }

    /// For the library: the input.
    TESSERA_TILE const View& view() const { return *view_; }
    /// For the library: which places have the same band.
    TESSERA_TILE detail::BandKind kind() const { return kind_; }
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

#ifdef __CUDACC_RTC__
    /// For the library.
    TESSERA_TILE void note() const
    {
        const auto& memory = view_->memory();
        detail::note_band(memory, along_columns_, end_ == (along_columns_ ? memory.columns : memory.rows));
    }
#endif

private:
    const View* view_;
    detail::Spot first_;
    std::int64_t end_;
    bool along_columns_;
    detail::BandKind kind_;
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
/// @tparam E        `Extents` of the matrix that the program is compiled for; the default is any
template <class T, int Rows, int Columns, class Order = RowMajor, class E = Extents<>>
class Input {
    static_assert(detail::require_tiles<T, Rows, Columns>());
    static_assert(detail::is_extents<E>,
                  "tessera: the last parameter of an input or output is Extents<rows, columns> of its matrix");

public:
    using element_type = T;                                      ///< of the matrix
    using extents = E;                                           ///< that the program is compiled for
    static constexpr int rows = Rows;                            ///< of a tile
    static constexpr int columns = Columns;                      ///< of a tile
    using Staged = detail::StagedTile<T, Rows, Columns, Order>;  ///< for the library

    /// An empty matrix.
    Input() = default;
#ifndef __CUDACC_RTC__
    /// Views a matrix. On a GPU with TMA, encodes its tensor map.
    /// @throws Error  `shape_mismatch` for a matrix of other extents than the program is compiled for, and as `TensorMap::encode`
    Input(const MatrixView<const T, Order>& matrix, std::source_location caller = std::source_location::current())
        : Input(detail::memory_of<const T>(matrix), caller)
    {}
    /// Views a matrix that can be written, too.
    Input(const MatrixView<T, Order>& matrix, std::source_location caller = std::source_location::current())
        : Input(MatrixView<const T, Order>(matrix), caller)
    {}
    /// Views a batch of matrices: place (row, column) of batch i has tiles of matrix i.
    /// @throws Error  `invalid_argument` for a batch of two levels with a distance of their own, and as `TensorMap::encode`
    Input(const BatchView<const T, Order>& matrices, std::source_location caller = std::source_location::current())
        : Input(detail::memory_of<const T>(matrices, caller), caller)
    {}
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
#endif

    /// Returns the tile at a place, or at a transposed place. A vector's is the part that meets the place's rows or columns.
    /// @param outside  what elements outside of the matrix are
    template <class Machine, int PlaceRows, int PlaceColumns, bool Transposed>
    TESSERA_TILE auto load(const Position<Machine, PlaceRows, PlaceColumns, Transposed>& at, float outside = 0.0F) const
    {
        static_assert(
            (Rows == PlaceRows || Rows == 1) && (Columns == PlaceColumns || Columns == 1),
            "tessera: an input is loaded at a place of its own shape: the input's tiles have other rows or columns "
            "than the output's");
        using Layout = detail::LoadedLayout<Machine, Input>;
        constexpr detail::Edges edges = detail::edges_of<Machine, Input>();
        Tile<T, Rows, Columns, Layout> tile;
        const detail::Spot spot = detail::spot_at(*this, at);
        if constexpr (Layout::registers > 0) {
            detail::load_values<edges>(tile, memory(), spot, T(outside));
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
        note_band<Machine>(detail::Along::rows, detail::Along::nothing);
        return tiles_of_row(at.where().tile_row, memory().batch_of(at.batch()), detail::BandKind::of_place_rows);
    }
    /// Returns all tiles above and below a place: those of its columns.
    template <class Machine, int PlaceRows, int PlaceColumns>
    TESSERA_TILE Band<Input> column(const Place<Machine, PlaceRows, PlaceColumns>& at) const
    {
        static_assert(
            Columns == PlaceColumns,
            "tessera: the columns of an input's tile and of the output's must be equal: the band would be another's");
        note_band<Machine>(detail::Along::nothing, detail::Along::columns);
        return tiles_of_column(at.where().tile_column, memory().batch_of(at.batch()),
                               detail::BandKind::of_place_columns);
    }
    /// Returns all tiles of a row of tiles.
    /// @param batch  the number of the matrix, which need not be the place's; the batch may have other matrices than the output's. A
    ///               number outside stops the kernel. A single matrix has any number
    TESSERA_TILE Band<Input> row(std::uint32_t tile_row, std::uint32_t batch = 0) const
    {
        return tiles_of_row(tile_row, chosen(batch), detail::BandKind::any);
    }
    /// Returns all tiles of a column of tiles.
    /// @param batch  as for `row`
    TESSERA_TILE Band<Input> column(std::uint32_t tile_column, std::uint32_t batch = 0) const
    {
        return tiles_of_column(tile_column, chosen(batch), detail::BandKind::any);
    }

    /// For the library.
    TESSERA_TILE decltype(auto) memory() const
    {
        if constexpr (std::is_same_v<E, Extents<>>) {
            return (state_.memory);
        } else {
            return detail::with_extents<E>(state_.memory);
        }
    }
    /// For the library.
    TESSERA_TILE const AnyTensorMap<3>& map() const { return state_.map; }
    /// Returns true if TMA can load tiles.
    TESSERA_TILE bool has_map() const { return state_.has_map; }

private:
    template <class Machine>
    TESSERA_TILE void note_band([[maybe_unused]] detail::Along of_rows, [[maybe_unused]] detail::Along of_columns) const
    {
        if constexpr (Machine::is_planned) {
            detail::note_matrix<Machine>(memory());
            if constexpr (Machine::whole_tiles) {
                detail::note_whole(*this, of_rows, of_columns);
            }
        }
    }
    TESSERA_TILE Band<Input> tiles_of_row(std::uint32_t tile_row, std::int64_t matrix, detail::BandKind kind) const
    {
        return {*this, {matrix, std::int64_t{tile_row} * Rows, 0}, true, memory().columns, kind};
    }
    TESSERA_TILE Band<Input> tiles_of_column(std::uint32_t tile_column, std::int64_t matrix,
                                             detail::BandKind kind) const
    {
        return {*this, {matrix, 0, std::int64_t{tile_column} * Columns}, false, memory().rows, kind};
    }
    /// The matrix that a program chooses by number.
    TESSERA_TILE std::int64_t chosen(std::uint32_t batch) const
    {
        detail::note_device(memory().device);
#ifdef __CUDA_ARCH__
        tessera::detail::trap_unless(memory().batches == 1 || batch < memory().batches);
#endif
        return memory().batch_of(batch);
    }
#ifndef __CUDACC_RTC__
    Input(const detail::Memory<const T, Order>& memory, const std::source_location& caller)
    {
        detail::require_extents<E>("tile::Input", memory.rows, memory.columns, caller);
        state_.memory = memory;
        if constexpr (Staged::exists) {
            state_.has_map = detail::encode_map(detail::map_of<Staged>, detail::untyped(memory), state_.map, caller);
        }
    }
#endif

    detail::InputState<T, Order> state_;
};

/// A matrix that a program writes, cut into tiles of (Rows, Columns).
/// @tparam T        the element type
/// @tparam Rows     of a tile
/// @tparam Columns  of a tile
/// @tparam Order    RowMajor or ColumnMajor
/// @tparam E        as of an input
template <class T, int Rows, int Columns, class Order = RowMajor, class E = Extents<>>
class Output {
    static_assert(detail::require_tiles<T, Rows, Columns>());
    static_assert(detail::is_extents<E>,
                  "tessera: the last parameter of an input or output is Extents<rows, columns> of its matrix");

public:
    using element_type = T;                  ///< of the matrix
    using extents = E;                       ///< that the program is compiled for
    static constexpr int rows = Rows;        ///< of a tile
    static constexpr int columns = Columns;  ///< of a tile

    /// An empty matrix.
    Output() = default;
#ifndef __CUDACC_RTC__
    /// Views a matrix.
    /// @throws Error  `shape_mismatch` for a matrix of other extents than the program is compiled for
    Output(const MatrixView<T, Order>& matrix, std::source_location caller = std::source_location::current())
        : Output(detail::memory_of<T>(matrix), caller)
    {}
    /// Views a batch of matrices.
    /// @throws Error  `invalid_argument` for a batch of two levels with a distance of their own
    Output(const BatchView<T, Order>& matrices, std::source_location caller = std::source_location::current())
        : Output(detail::memory_of<T>(matrices, caller), caller)
    {}

    /// Refuses to compile what is no matrix of such elements that can be written.
    template <class Other>
        requires(!detail::ViewOf<Other, T, Order>)
    Output(const Other&)
    {
        detail::refuse_as_matrix<Other, T, Order>();
    }
#endif

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
        const detail::Spot spot = detail::spot_at(*this, at);
        const auto& values =
            detail::settled(x);  // also where a thread has none: the role that multiplies ends sums there
        if constexpr (Facts::layout::registers > 0) {
            detail::store_values<detail::edges_of<Machine, Output>()>(values, memory(), spot);
        }
    }
    /// Refuses to compile for a transposed place.
    template <class Machine, int PlaceRows, int PlaceColumns, bool Transposed, detail::TileLike X>
    TESSERA_TILE void store(const Position<Machine, PlaceRows, PlaceColumns, Transposed>& /*at*/, const X& /*x*/) const
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
    TESSERA_TILE decltype(auto) memory() const
    {
        if constexpr (std::is_same_v<E, Extents<>>) {
            return (state_.memory);
        } else {
            return detail::with_extents<E>(state_.memory);
        }
    }

private:
    template <class Machine>
    TESSERA_TILE PlaceRange<Machine, Rows, Columns> places(Cta<Machine> cta, bool from_last_row) const
    {
        const std::int64_t tile_rows = detail::tiles_along(memory().rows, Rows);
        const std::int64_t tile_columns = detail::tiles_along(memory().columns, Columns);
        detail::note_places<Machine>(memory(), tile_rows, tile_columns);
        if constexpr (Machine::instructions == Instructions::tcgen05 && Machine::role == detail::Role::plan) {
            detail::note_rows_of_places(tile_rows, tile_columns);
        }
        const detail::TileOrder order{&state_.raster, static_cast<std::uint32_t>(tile_rows),
                                      static_cast<std::uint32_t>(tile_columns),
                                      static_cast<std::uint32_t>(memory().batches), from_last_row};
        if constexpr (Machine::ctas > 1) {
            return {detail::groups_of<Machine>(order, cta.ring()), cta.ring()};
        } else {
            return {order, cta.ring()};
        }
    }

#ifndef __CUDACC_RTC__
    Output(const detail::Memory<T, Order>& memory, const std::source_location& caller)
    {
        detail::require_extents<E>("tile::Output", memory.rows, memory.columns, caller);
        state_ = {memory, detail::raster_of(memory, Rows, Columns)};
    }
#endif

    detail::OutputState<T, Order> state_;
};

}  // namespace tessera::tile
