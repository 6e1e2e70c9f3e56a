#pragma once

/// @file
/// @ingroup host_views
/// @brief `RowMajor` and `ColumnMajor`: in which direction a matrix is contiguous.

#include "tessera/detail/language.hpp"

#include <concepts>

namespace tessera {

/// Row-major storage: element (row, column) is at `row * leading_dimension + column`.
struct RowMajor {
    /// The order of the same memory with rows and columns exchanged.
    using Transposed = struct ColumnMajor;
};
/// Column-major storage: element (row, column) is at `column * leading_dimension + row`.
struct ColumnMajor {
    /// The order of the same memory with rows and columns exchanged.
    using Transposed = RowMajor;
};

/// A storage order: RowMajor or ColumnMajor.
template <class Order>
concept StorageOrder = std::same_as<Order, RowMajor> || std::same_as<Order, ColumnMajor>;

}  // namespace tessera
