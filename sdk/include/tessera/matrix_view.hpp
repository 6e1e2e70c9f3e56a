#pragma once

/// Matrices in device memory that somebody else owns: `MatrixView` (one) and `BatchView` (equally spaced ones).
///
/// A view is an address, extents, a leading dimension and a device. Whoever makes it has proved that the memory is long
/// enough; from then on it is only narrowed. A view of `const` elements cannot be an output.
///
/// Words: the *leading dimension* is the distance in elements between the starts of two neighbouring rows (row-major)
/// or columns (column-major).

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string_view>
#include <type_traits>

#include "tessera/element.hpp"
#include "tessera/error.hpp"

namespace tessera {

/// Element (row, column) is at `row * leading_dimension + column`.
struct RowMajor {
    /// The order of the same memory with rows and columns exchanged.
    using Transposed = struct ColumnMajor;
};
/// Element (row, column) is at `column * leading_dimension + row`.
struct ColumnMajor {
    /// The order of the same memory with rows and columns exchanged.
    using Transposed = RowMajor;
};

/// RowMajor or ColumnMajor.
template <class Order>
concept StorageOrder = std::same_as<Order, RowMajor> || std::same_as<Order, ColumnMajor>;

namespace detail {

/// Extents of a matrix as it lies in memory. "Vector" is a row of a row-major matrix, a column of a column-major one.
struct MatrixExtents {
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t leading_dimension;
    bool row_major;

    constexpr std::int64_t vector_size() const noexcept { return row_major ? columns : rows; }
    constexpr std::int64_t vector_count() const noexcept { return row_major ? rows : columns; }
};

/// Elements from the first to one past the last.
/// @throws Error `invalid_argument` (negative extent, leading dimension too small), `size_overflow`
std::int64_t require_extents(std::string_view operation, const MatrixExtents& extents, std::size_t element_bytes,
                             const std::source_location& caller);

/// Checks that the matrix lies inside of `size` elements. @throws Error `out_of_range` and as above
void require_matrix_fits(std::string_view operation, const MatrixExtents& extents, std::size_t element_bytes,
                         std::size_t size, const std::source_location& caller);

/// Checks a strided batch likewise. A stride of 0 is one matrix used `count` times, which cannot be written.
void require_batch_fits(std::string_view operation, const MatrixExtents& extents, std::int64_t count,
                        std::int64_t stride, bool is_output, std::size_t element_bytes, std::size_t size,
                        const std::source_location& caller);

/// Checks 0 <= row, row + rows <= all rows, and the same for columns. @throws Error `out_of_range`
void require_block(std::string_view operation, const MatrixExtents& extents, std::int64_t row, std::int64_t column,
                   std::int64_t rows, std::int64_t columns, const std::source_location& caller);

/// The device that owns `pointer`. @throws Error `wrong_memory` for host memory that kernels cannot reach
int device_of_pointer(const void* pointer, std::string_view operation, const std::source_location& caller);

/// The same for the address of elements. @throws Error `misaligned` if no element can lie there, and as above
int device_of_elements(const void* pointer, std::size_t alignment, std::string_view operation,
                       const std::source_location& caller);

}  // namespace detail

/// A matrix in device memory. `T` is one of the types of element.hpp or a `const` one.
template <class T, class Order = RowMajor>
class MatrixView {
    static_assert(MatrixElement<T>,
                  "tessera: a matrix has elements of type f32, f16, bf16, tf32, f8e4m3 or f8e5m2 (or const ones)");
    static_assert(StorageOrder<Order>, "tessera: the storage order of a matrix is RowMajor or ColumnMajor");

public:
    /// The element type without const.
    using value_type = std::remove_const_t<T>;
    /// RowMajor or ColumnMajor.
    using order_type = Order;
    /// True for RowMajor.
    static constexpr bool is_row_major = std::is_same_v<Order, RowMajor>;

    /// For the SDK: a view that was already checked.
    constexpr MatrixView(T* data, std::int64_t rows, std::int64_t columns, std::int64_t leading_dimension,
                         int device) noexcept
        : data_(data), rows_(rows), columns_(columns), leading_dimension_(leading_dimension), device_(device)
    {}

    /// Views memory that the SDK did not allocate. The caller vouches for the length; that the memory is a device's is
    /// asked of CUDA.
    /// @throws Error `invalid_argument`, `size_overflow`, `wrong_memory`, `misaligned`
    static MatrixView from_raw_device_pointer(T* data, std::int64_t rows, std::int64_t columns,
                                              std::int64_t leading_dimension,
                                              std::source_location caller = std::source_location::current())
    {
        constexpr std::string_view operation = "MatrixView::from_raw_device_pointer";
        const auto elements =
            detail::require_extents(operation, {rows, columns, leading_dimension, is_row_major}, sizeof(T), caller);
        return {data, rows, columns, leading_dimension,
                elements == 0 ? -1 : detail::device_of_elements(data, alignof(T), operation, caller)};
    }

    /// A view of writable elements is one of const elements.
    /// A template only because nvcc warns of a plain operator where T is const already.
    template <std::same_as<const T> ConstElement>
        requires(!std::is_const_v<T>)
    constexpr operator MatrixView<ConstElement, Order>() const noexcept
    {
        return {data_, rows_, columns_, leading_dimension_, device_};
    }

    /// The address of element (0, 0) in device memory.
    constexpr T* data() const noexcept { return data_; }
    /// How many rows.
    constexpr std::int64_t rows() const noexcept { return rows_; }
    /// How many columns.
    constexpr std::int64_t columns() const noexcept { return columns_; }
    /// In elements.
    constexpr std::int64_t leading_dimension() const noexcept { return leading_dimension_; }
    /// Elements from one row to the next.
    constexpr std::int64_t row_stride() const noexcept { return is_row_major ? leading_dimension_ : 1; }
    /// Elements from one column to the next.
    constexpr std::int64_t column_stride() const noexcept { return is_row_major ? 1 : leading_dimension_; }
    /// True if there are no elements.
    constexpr bool empty() const noexcept { return rows_ == 0 || columns_ == 0; }
    /// The ordinal of the memory's device, -1 for an empty view of none.
    constexpr int device() const noexcept { return device_; }

    /// The same memory with rows and columns exchanged. Nothing moves.
    constexpr MatrixView<T, typename Order::Transposed> transposed() const noexcept
    {
        return {data_, columns_, rows_, leading_dimension_, device_};
    }

    /// The rows [row, row + rows) and columns [column, column + columns).
    /// @throws Error `out_of_range`
    MatrixView block(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns,
                     std::source_location caller = std::source_location::current()) const
    {
        detail::require_block("MatrixView::block", {rows_, columns_, leading_dimension_, is_row_major}, row, column,
                              rows, columns, caller);
        return {data_ + (row * row_stride() + column * column_stride()), rows, columns, leading_dimension_, device_};
    }

    /// Tile (tile_row, tile_column) of the grid of tile_rows x tile_columns tiles that covers the matrix; tiles at the
    /// lower and right edges are smaller where the extents do not divide.
    /// @throws Error `out_of_range` if the tile lies outside, `invalid_argument` for a tile without elements
    MatrixView tile(std::int64_t tile_row, std::int64_t tile_column, std::int64_t tile_rows, std::int64_t tile_columns,
                    std::source_location caller = std::source_location::current()) const;

private:
    T* data_;
    std::int64_t rows_;
    std::int64_t columns_;
    std::int64_t leading_dimension_;
    int device_;
};

/// The memory of an f32 matrix as tf32, so that tensor cores take it as it is: nothing is copied or rounded, a tensor
/// core ignores the 13 low bits of each element. That truncates (a relative error of up to 2^-10, where `tf32(float)`
/// rounds with one of 2^-11), and makes infinity of a NaN that only those bits tell from it; CUDA makes no such NaN.
template <class T, class Order>
    requires std::same_as<std::remove_const_t<T>, f32>
auto as_tf32(MatrixView<T, Order> matrix) noexcept
{
    using Element = std::conditional_t<std::is_const_v<T>, const tf32, tf32>;
    return MatrixView<Element, Order>(reinterpret_cast<Element*>(matrix.data()), matrix.rows(), matrix.columns(),
                                      matrix.leading_dimension(), matrix.device());
}

/// `count()` matrices of equal extents, `stride()` elements apart. Stride 0 is one matrix used for all (inputs only).
template <class T, class Order = RowMajor>
class BatchView {
public:
    /// The element type without const.
    using value_type = std::remove_const_t<T>;
    /// RowMajor or ColumnMajor.
    using order_type = Order;

    /// For the SDK: a view that was already checked.
    constexpr BatchView(MatrixView<T, Order> first, std::int64_t count, std::int64_t stride) noexcept
        : first_(first), count_(count), stride_(stride)
    {}

    /// A batch of writable elements is one of const elements.
    /// A template only because nvcc warns of a plain operator where T is const already.
    template <std::same_as<const T> ConstElement>
        requires(!std::is_const_v<T>)
    constexpr operator BatchView<ConstElement, Order>() const noexcept
    {
        return {first_, count_, stride_};
    }

    /// The first matrix; all others have its extents.
    constexpr const MatrixView<T, Order>& first() const noexcept { return first_; }
    /// How many matrices.
    constexpr std::int64_t count() const noexcept { return count_; }
    /// In elements, from the start of one matrix to the start of the next.
    constexpr std::int64_t stride() const noexcept { return stride_; }
    /// Every matrix transposed. Nothing moves.
    constexpr BatchView<T, typename Order::Transposed> transposed() const noexcept
    {
        return {first_.transposed(), count_, stride_};
    }

    /// One of the matrices. @throws Error `out_of_range`
    MatrixView<T, Order> at(std::int64_t index, std::source_location caller = std::source_location::current()) const;

private:
    MatrixView<T, Order> first_;
    std::int64_t count_;
    std::int64_t stride_;
};

/// The same for a batch.
template <class T, class Order>
    requires std::same_as<std::remove_const_t<T>, f32>
auto as_tf32(BatchView<T, Order> batch) noexcept
{
    return BatchView(as_tf32(batch.first()), batch.count(), batch.stride());
}

namespace detail {

[[noreturn]] void raise_tile(std::string_view operation, const std::source_location& caller, std::int64_t tile_row,
                             std::int64_t tile_column, std::int64_t tile_rows, std::int64_t tile_columns,
                             std::int64_t rows, std::int64_t columns);
[[noreturn]] void raise_batch_index(std::int64_t index, std::int64_t count, const std::source_location& caller);

}  // namespace detail

template <class T, class Order>
MatrixView<T, Order> MatrixView<T, Order>::tile(std::int64_t tile_row, std::int64_t tile_column, std::int64_t tile_rows,
                                                std::int64_t tile_columns, std::source_location caller) const
{
    // Divisions, not products: tile_row * tile_rows may overflow for a row that is far outside.
    if (tile_rows <= 0 || tile_columns <= 0 || tile_row < 0 || tile_column < 0 || tile_row > (rows_ - 1) / tile_rows ||
        tile_column > (columns_ - 1) / tile_columns || empty()) {
        detail::raise_tile("MatrixView::tile", caller, tile_row, tile_column, tile_rows, tile_columns, rows_, columns_);
    }
    const std::int64_t row = tile_row * tile_rows;
    const std::int64_t column = tile_column * tile_columns;
    const std::int64_t rows = tile_rows < rows_ - row ? tile_rows : rows_ - row;
    const std::int64_t columns = tile_columns < columns_ - column ? tile_columns : columns_ - column;
    return block(row, column, rows, columns, caller);
}

template <class T, class Order>
MatrixView<T, Order> BatchView<T, Order>::at(std::int64_t index, std::source_location caller) const
{
    if (index < 0 || index >= count_) {
        detail::raise_batch_index(index, count_, caller);
    }
    return {first_.data() + index * stride_, first_.rows(), first_.columns(), first_.leading_dimension(),
            first_.device()};
}

}  // namespace tessera
