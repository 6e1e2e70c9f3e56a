#include "tessera/distributed/sharded_matrix.hpp"

#include <fmt/format.h>

#include "communicator_state.hpp"
#include "tessera/error.hpp"

namespace tessera::distributed {
namespace {

using tessera::detail::raise;

ShardedMatrix checked(const Communicator& communicator, const ShardedMatrix& matrix, std::string_view operation,
                      const std::source_location& caller)
{
    const auto places = std::int64_t{matrix.grid_rows} * matrix.grid_columns;
    const int ranks = matrix.sharding == Sharding::replicated ? 1 : communicator.size();
    if (matrix.grid_rows < 1 || matrix.grid_columns < 1 || places != ranks) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("a grid of {} x {} has {} places, but there are {} ranks", matrix.grid_rows,
                          matrix.grid_columns, places, ranks),
              "a grid with as many places as ranks");
    }
    if (matrix.rows < 0 || matrix.columns < 0) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("a matrix cannot have extents {}x{}", matrix.rows, matrix.columns), "extents of 0 or more");
    }
    const MatrixOperand& local = matrix.local;
    if (!local.present || local.batches != 1 || local.outer_batches != 1) {
        raise(ErrorCode::invalid_argument, operation, caller,
              local.present ? "a sharded matrix cannot be a batch" : "there is no matrix", "one matrix for each rank");
    }
    const std::int64_t rows = matrix.rows_of(matrix.rank).size;
    const std::int64_t columns = matrix.columns_of(matrix.rank).size;
    if (local.rows != rows || local.columns != columns) {
        raise(ErrorCode::shape_mismatch, operation, caller,
              fmt::format("rank {} of {} has a matrix of {}x{}, but its part of {} is {}x{}", communicator.rank(),
                          communicator.size(), local.rows, local.columns, matrix.describe(), rows, columns),
              "Share::of tells the part of each rank");
    }
    tessera::detail::require_same_device(operation, caller, "the communicator", communicator.device().ordinal(),
                                         "the matrix", local.device);
    return matrix;
}

}  // namespace

std::string_view to_string(Sharding sharding) noexcept
{
    switch (sharding) {
        case Sharding::replicated: return "replicated";
        case Sharding::by_rows: return "by_rows";
        case Sharding::by_columns: return "by_columns";
        case Sharding::by_blocks: return "by_blocks";
    }
    return "unknown";
}

std::string_view to_string(GridOrder order) noexcept
{
    return order == GridOrder::along_rows ? "along rows" : "along columns";
}

ShardedMatrix ShardedMatrix::replicated(const Communicator& communicator, std::int64_t rows, std::int64_t columns,
                                        const MatrixOperand& local, std::source_location caller)
{
    return checked(communicator, {.rows = rows, .columns = columns, .local = local}, "ShardedMatrix::replicated",
                   caller);
}

ShardedMatrix ShardedMatrix::by_rows(const Communicator& communicator, std::int64_t rows, std::int64_t columns,
                                     const MatrixOperand& local, std::source_location caller)
{
    return checked(communicator,
                   {.rows = rows,
                    .columns = columns,
                    .sharding = Sharding::by_rows,
                    .grid_rows = communicator.size(),
                    .rank = communicator.rank(),
                    .local = local},
                   "ShardedMatrix::by_rows", caller);
}

ShardedMatrix ShardedMatrix::by_columns(const Communicator& communicator, std::int64_t rows, std::int64_t columns,
                                        const MatrixOperand& local, std::source_location caller)
{
    return checked(communicator,
                   {.rows = rows,
                    .columns = columns,
                    .sharding = Sharding::by_columns,
                    .grid_columns = communicator.size(),
                    .rank = communicator.rank(),
                    .local = local},
                   "ShardedMatrix::by_columns", caller);
}

ShardedMatrix ShardedMatrix::by_blocks(const Communicator& communicator, std::int64_t rows, std::int64_t columns,
                                       int grid_rows, int grid_columns, const MatrixOperand& local, GridOrder order,
                                       std::source_location caller)
{
    return checked(communicator,
                   {.rows = rows,
                    .columns = columns,
                    .sharding = Sharding::by_blocks,
                    .grid_rows = grid_rows,
                    .grid_columns = grid_columns,
                    .grid_order = order,
                    .rank = communicator.rank(),
                    .local = local},
                   "ShardedMatrix::by_blocks", caller);
}

std::string ShardedMatrix::describe() const
{
    std::string text = fmt::format("{}x{} {}", rows, columns, to_string(sharding));
    if (sharding == Sharding::by_blocks) {
        text += fmt::format(" ({}x{} ranks {})", grid_rows, grid_columns, to_string(grid_order));
    }
    return text;
}

}  // namespace tessera::distributed
