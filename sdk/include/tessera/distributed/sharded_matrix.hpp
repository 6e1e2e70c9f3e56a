#pragma once

/// @file
/// @ingroup distributed
/// @brief `ShardedMatrix`: a matrix of which each rank has a part, or a copy.

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

#include "tessera/distributed/communicator.hpp"
#include "tessera/matrix_operand.hpp"

namespace tessera::distributed {

/// How a matrix is divided among ranks.
enum class Sharding : std::uint8_t {
    replicated,  ///< each rank has all of it
    by_rows,     ///< each rank has some of the rows
    by_columns,  ///< each rank has some of the columns
    by_blocks,   ///< the ranks form a grid, and each has a block
};

/// Returns "replicated", "by_rows", "by_columns" or "by_blocks".
std::string_view to_string(Sharding sharding) noexcept;

/// In which order ranks have the places of a grid.
enum class GridOrder : std::uint8_t {
    along_rows,     ///< rank r has block (r / grid_columns, r % grid_columns)
    along_columns,  ///< rank r has block (r % grid_rows, r / grid_rows)
};

/// Returns "along rows" or "along columns".
std::string_view to_string(GridOrder order) noexcept;

/// The part of an extent that one rank has.
struct Share {
    std::int64_t begin = 0;  ///< first index
    std::int64_t size = 0;   ///< number of indices

    /// Divides `extent` into `parts` that differ by at most 1, larger ones first, and returns part `index`.
    static Share of(std::int64_t extent, int parts, int index) noexcept
    {
        const std::int64_t least = extent / parts;
        const std::int64_t larger = extent % parts;
        const std::int64_t before = index < larger ? index : larger;
        return {index * least + before, least + (index < larger ? 1 : 0)};
    }
};

/// A matrix that is divided among the ranks of a communicator: this rank's part, and where it belongs. Does not own the memory.
///
/// @code{.cpp}
/// const auto a = ShardedMatrix::by_rows(communicator, m, k, shard.matrix(Share::of(m, size, rank).size, k));
/// @endcode
///
/// @par Thread safety
/// A value.
struct ShardedMatrix {
    std::int64_t rows = 0;                         ///< of the whole matrix
    std::int64_t columns = 0;                      ///< of the whole matrix
    Sharding sharding = Sharding::replicated;      ///< how it is divided
    int grid_rows = 1;                             ///< ranks that the rows are divided among
    int grid_columns = 1;                          ///< ranks that the columns are divided among
    GridOrder grid_order = GridOrder::along_rows;  ///< which block a rank has
    int rank = 0;                                  ///< of the communicator
    // Braces: Doxygen takes "local =" for a word of another language, and loses the name.
    MatrixOperand local{};  ///< this rank's part

    /// Each rank has all of the matrix.
    /// @param rows, columns  extents of the whole matrix, on each rank the same
    /// @param local          this rank's part: a MatrixView or MatrixOperand
    /// @throws Error  `shape_mismatch` if `local` has not the extents of this rank's part, `device_mismatch` if it is on another
    ///                device than the communicator, `invalid_argument` for a batch or no matrix
    static ShardedMatrix replicated(const Communicator& communicator, std::int64_t rows, std::int64_t columns,
                                    const MatrixOperand& local,
                                    std::source_location caller = std::source_location::current());
    /// Rank r has the rows `Share::of(rows, size, r)`. Otherwise as `replicated`.
    static ShardedMatrix by_rows(const Communicator& communicator, std::int64_t rows, std::int64_t columns,
                                 const MatrixOperand& local,
                                 std::source_location caller = std::source_location::current());
    /// Rank r has the columns `Share::of(columns, size, r)`. Otherwise as `replicated`.
    static ShardedMatrix by_columns(const Communicator& communicator, std::int64_t rows, std::int64_t columns,
                                    const MatrixOperand& local,
                                    std::source_location caller = std::source_location::current());
    /// The ranks form a grid of grid_rows x grid_columns; block (i, j) has the rows `Share::of(rows, grid_rows, i)` and the columns
    /// `Share::of(columns, grid_columns, j)`. Otherwise as `replicated`.
    /// @param order  which block a rank has
    /// @throws Error  `invalid_argument` if the grid has not as many places as there are ranks
    static ShardedMatrix by_blocks(const Communicator& communicator, std::int64_t rows, std::int64_t columns,
                                   int grid_rows, int grid_columns, const MatrixOperand& local,
                                   GridOrder order = GridOrder::along_rows,
                                   std::source_location caller = std::source_location::current());

    /// Returns the row of the grid that rank `of` is in.
    int grid_row_of(int of) const noexcept
    {
        return grid_order == GridOrder::along_rows ? of / grid_columns : of % grid_rows;
    }
    /// Returns the column of the grid that rank `of` is in.
    int grid_column_of(int of) const noexcept
    {
        return grid_order == GridOrder::along_rows ? of % grid_columns : of / grid_rows;
    }
    /// Returns the rows that rank `of` has.
    Share rows_of(int of) const noexcept { return Share::of(rows, grid_rows, grid_row_of(of)); }
    /// Returns the columns that rank `of` has.
    Share columns_of(int of) const noexcept { return Share::of(columns, grid_columns, grid_column_of(of)); }

    /// Returns one line for people.
    std::string describe() const;
};

}  // namespace tessera::distributed
