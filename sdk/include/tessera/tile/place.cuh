#pragma once

/// @file
/// @ingroup tile_views
/// @brief `Place`: which tile of its output a program is at.
///
/// Only an output's partition makes places. No two CTAs get the same one, and a tile can be stored only at a place: programs cannot
/// overwrite each other's results.

#include "tessera/detail/language.hpp"

#include <concepts>
#include <cstdint>

#include "tessera/detail/refused.hpp"
#include "tessera/device/cluster.cuh"
#include "tessera/device/tile_raster.hpp"
#include "tessera/tile/cta.cuh"
#include "tessera/tile/tcgen05_plan.hpp"
#include "tessera/tile/tile.cuh"

namespace tessera::tile {

template <class T, int Rows, int Columns, class Order, class E>
class Output;

namespace detail {

/// A position as plain numbers: in tiles, and in elements.
struct PlainPosition {
    std::uint32_t tile_row;
    std::uint32_t tile_column;
    std::int64_t first_row;
    std::int64_t first_column;
};

/// Notes that the program asks for the row of a place. The CTAs of a pair or a cluster have other rows, and must go the same way:
/// programs that ask have none, and a branch that asks and that the plan did not see stops the kernel.
template <class Machine>
TESSERA_TILE void note_row_is_read()
{
    if constexpr (Machine::instructions == Instructions::tcgen05 && Machine::role == Role::plan) {
        note_refusal<PairRefusal::row>();
    } else if constexpr (Machine::role == Role::plan) {
        note_place_is_read(true, false);
    } else if constexpr (Machine::group_rows > 1) {
        refuse_branch();
    }
}
/// The same for the column, which those of a pair share.
template <class Machine>
TESSERA_TILE void note_column_is_read()
{
    if constexpr (Machine::role == Role::plan) {
        note_place_is_read(false, true);
    } else if constexpr (Machine::group_columns > 1) {
        refuse_branch();
    }
}

}  // namespace detail

/// Where a tile is. `Input::load` takes it; `Output::store` takes only a `Place`.
/// @tparam Rows        of a tile
/// @tparam Columns     of a tile
/// @tparam Transposed  it is a place's, with rows and columns exchanged
template <class Machine, int Rows, int Columns, bool Transposed = false>
class Position {
public:
    static constexpr int rows = Rows;        ///< of a tile
    static constexpr int columns = Columns;  ///< of a tile

    /// Returns the tile's first row in the matrix.
    TESSERA_TILE std::int64_t first_row() const
    {
        detail::note_row_is_read<Machine>();
        return where().first_row;
    }
    /// Returns the tile's first column in the matrix.
    TESSERA_TILE std::int64_t first_column() const
    {
        detail::note_column_is_read<Machine>();
        return where().first_column;
    }
    /// Returns the row in tiles.
    TESSERA_TILE std::uint32_t tile_row() const
    {
        detail::note_row_is_read<Machine>();
        return row_;
    }
    /// Returns the column in tiles.
    TESSERA_TILE std::uint32_t tile_column() const
    {
        detail::note_column_is_read<Machine>();
        return column_;
    }
    /// Returns the number of the matrix in its batch.
    TESSERA_TILE std::uint32_t batch() const { return batch_; }
    /// For the library: where the tile is.
    TESSERA_TILE detail::PlainPosition where() const
    {
        return {row_, column_, std::int64_t{row_} * Rows, std::int64_t{column_} * Columns};
    }
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
    TESSERA_TILE Position<Machine, Columns, Rows, true> transposed() const
    {
        // Asks for the row, as its column tells it.
        return Position<Machine, Columns, Rows, true>(
            TilePosition{this->tile_column(), this->tile_row(), this->batch()}, this->ring());
    }

private:
    template <class, int, int, class, class>
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

/// The order of groups of places, one place for each CTA of a pair or a cluster. The last ones may have places outside.
template <class Machine>
TESSERA_TILE TileOrder groups_of(const TileOrder& places, const RingState& ring)
{
    constexpr std::uint32_t rows = Machine::group_rows;
    constexpr std::uint32_t columns = Machine::group_columns;
    return {ring.groups, (places.rows + rows - 1) / rows, (places.columns + columns - 1) / columns, places.batches,
            places.from_last_row};
}

/// Changes the position of a group to that of the calling CTA's place.
template <class Machine>
TESSERA_TILE void to_place_in_group([[maybe_unused]] TilePosition& position)
{
#ifdef __CUDA_ARCH__
    const ClusterGrid group(Machine::group_rows, Machine::group_columns);
    position.row = Machine::group_rows * position.row + group.row();
    position.column = Machine::group_columns * position.column + group.column();
#endif
}

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
        TESSERA_TILE Place<Machine, Rows, Columns> operator*() const
        {
            TilePosition position = order_.position(tile_);
            if constexpr (Machine::ctas > 1) {
                detail::to_place_in_group<Machine>(position);
            }
            return {position, *ring_};
        }
        /// Goes on to the next place.
        TESSERA_TILE Iterator& operator++()
        {
            tile_ += step_;
            step_ = round_trip_ - step_;
            return *this;
        }
        /// Returns false after the last place.
        TESSERA_TILE bool operator!=(End) const
        {
#ifdef __CUDACC_RTC__
            if constexpr (Machine::is_planned) {
                return tile_ == 0;  // for any output: the plan is made for all
            }
#endif
            return tile_ < order_.count();
        }

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
        if constexpr (Machine::is_planned) {
            return Iterator(order_, *ring_, 0, order_.count());  // a plan is made of the first alone
        } else {
#ifdef __CUDA_ARCH__
            return Iterator(order_, *ring_, blockIdx.x / Machine::ctas, gridDim.x / Machine::ctas);
#else
            return Iterator(order_, *ring_, 0, 1);  // no such role is on the host
#endif
        }
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

}  // namespace detail

}  // namespace tessera::tile
