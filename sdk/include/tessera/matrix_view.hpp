#pragma once

/// @file
/// @ingroup host_views
/// @brief Matrices in device memory that somebody else owns: `MatrixView` (one) and `BatchView` (equally spaced ones).
///
/// A view is an address, extents, a leading dimension and a device. Whoever makes it has checked that the memory is
/// long enough; from then on it is only narrowed. A view of `const` elements cannot be an output. A view must not
/// outlive its buffer.
///
/// Terminology: the *leading dimension* is the distance in elements between the starts of two neighbouring rows
/// (row-major) or columns (column-major).

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string_view>
#include <type_traits>

#include "tessera/detail/host_device.hpp"
#include "tessera/detail/trap.hpp"
#include "tessera/element.hpp"
#include "tessera/error.hpp"
#include "tessera/storage_order.hpp"

namespace tessera {

/// How the matrices of a batch are stored. All numbers are in elements; what is left out means that there are no gaps.
///
/// @code{.cpp}
/// const auto ten = buffer.matrices({.rows = 20, .columns = 30, .count = 10});
/// @endcode
///
/// A batch has two levels, for [batch, head] layouts: inner matrices are `stride` apart, and groups of `count` of them
/// are `outer_stride` apart. With queries stored as [batch][token][head][feature], the matrices of the heads are
///
/// @code{.cpp}
/// queries.matrices({.rows = tokens, .columns = features,
///                   .leading_dimension = heads * features,
///                   .count = heads, .stride = features,
///                   .outer_count = batch, .outer_stride = tokens * heads * features});
/// @endcode
struct BatchLayout {
    std::int64_t rows = 0;                            ///< rows of each matrix
    std::int64_t columns = 0;                         ///< columns of each matrix
    std::optional<std::int64_t> leading_dimension{};  ///< leading dimension of each matrix
    std::int64_t count = 1;                           ///< number of matrices in a group
    std::optional<std::int64_t> stride{};             ///< between matrices of a group; 0 uses one matrix for all
    std::int64_t outer_count = 1;                     ///< number of groups
    std::optional<std::int64_t> outer_stride{};       ///< between groups; 0 uses one group for all
};

namespace detail {

/// Extents of a matrix in memory. A "vector" is a row of a row-major matrix, a column of a column-major one.
struct MatrixExtents {
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t leading_dimension;
    bool row_major;

    TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t vector_size() const noexcept
    {
        return row_major ? columns : rows;
    }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t vector_count() const noexcept
    {
        return row_major ? rows : columns;
    }
    /// 0 <= row, row + rows <= all rows, and the same for columns.
    TESSERA_DETAIL_HOST_DEVICE constexpr bool has_block(std::int64_t row, std::int64_t column, std::int64_t block_rows,
                                                        std::int64_t block_columns) const noexcept
    {
        return row >= 0 && column >= 0 && block_rows >= 0 && block_columns >= 0 && row <= rows && column <= columns &&
               block_rows <= rows - row && block_columns <= columns - column;
    }
    /// Divides instead of multiplying: tile_row * tile_rows may overflow for a row that is far outside.
    TESSERA_DETAIL_HOST_DEVICE constexpr bool has_tile(std::int64_t tile_row, std::int64_t tile_column,
                                                       std::int64_t tile_rows, std::int64_t tile_columns) const noexcept
    {
        return tile_rows > 0 && tile_columns > 0 && tile_row >= 0 && tile_column >= 0 && rows > 0 && columns > 0 &&
               tile_row <= (rows - 1) / tile_rows && tile_column <= (columns - 1) / tile_columns;
    }
};

/// Extents of all matrices of a batch: a `BatchLayout` with every default filled in.
struct BatchExtents {
    MatrixExtents matrix;
    std::int64_t count;
    std::int64_t stride;
    std::int64_t outer_count;
    std::int64_t outer_stride;
};

/// Returns the number of elements from the first to one past the last.
/// @throws Error  `invalid_argument` (negative extent, leading dimension too small), `size_overflow`
std::int64_t require_extents(std::string_view operation, const MatrixExtents& extents, std::size_t element_bytes,
                             const std::source_location& caller);

/// Checks that the matrix fits into `size` elements. @throws Error  `out_of_range` and as above
void require_matrix_fits(std::string_view operation, const MatrixExtents& extents, std::size_t element_bytes,
                         std::size_t size, const std::source_location& caller);

/// Fills in the defaults of `layout` and checks the rest. @throws Error  `invalid_argument`, `size_overflow`
BatchExtents require_batch_extents(std::string_view operation, const BatchLayout& layout, bool row_major,
                                   std::size_t element_bytes, const std::source_location& caller);

/// Does the same and checks that the batch fits into `size` elements. @throws Error  `out_of_range` and as above
BatchExtents require_batch_fits(std::string_view operation, const BatchLayout& layout, bool row_major,
                                std::size_t element_bytes, std::size_t size, const std::source_location& caller);

/// Checks 0 <= row, row + rows <= all rows, and the same for columns. @throws Error `out_of_range`
void require_block(std::string_view operation, const MatrixExtents& extents, std::int64_t row, std::int64_t column,
                   std::int64_t rows, std::int64_t columns, const std::source_location& caller);

/// Returns the device that owns `pointer`. @throws Error  `wrong_memory` for host memory that kernels cannot reach
int device_of_pointer(const void* pointer, std::string_view operation, const std::source_location& caller);

/// Returns the same for the address of elements. @throws Error  `misaligned` if the address is not a multiple of
/// `alignment`, and as above
int device_of_elements(const void* pointer, std::size_t alignment, std::string_view operation,
                       const std::source_location& caller);

[[noreturn]] void raise_tile(std::string_view operation, const std::source_location& caller, std::int64_t tile_row,
                             std::int64_t tile_column, std::int64_t tile_rows, std::int64_t tile_columns,
                             std::int64_t rows, std::int64_t columns);
[[noreturn]] void raise_batch_index(std::int64_t index, std::int64_t count, const std::source_location& caller);
[[noreturn]] void raise_batch_index(std::int64_t outer, std::int64_t inner, std::int64_t outer_count,
                                    std::int64_t count, const std::source_location& caller);

}  // namespace detail

/// A matrix in device memory that somebody else owns.
///
/// A value of five words. It may be copied, kept in containers and passed to kernels. On the host it hands out
/// addresses but no elements; in device code it is indexed:
///
/// @code{.cpp}
/// __global__ void copy_row(MatrixView<float> out, MatrixView<const float, ColumnMajor> in)
/// {
///     const std::int64_t row = blockIdx.x;
///     for (std::int64_t column = threadIdx.x; column < in.columns(); column += blockDim.x) {
///         out(row, column) = in(row, column);  // an index outside stops the kernel
///     }
/// }
/// @endcode
///
/// @par Lifetime
/// The view must not outlive the memory. Nothing checks this at run time; the emulated device reports it.
///
/// @par Thread safety
/// A value: threads may use copies of it, or read the same object.
///
/// @tparam T      f32, f16, bf16, tf32, f8e4m3 or f8e5m2; a `const` one cannot be written
/// @tparam Order  RowMajor or ColumnMajor
template <class T, class Order = RowMajor>
class MatrixView {
    static_assert(!detail::is_vendor_element<T, f16>,
                  "tessera: write MatrixView<f16> (or const f16): pointers to __half are accepted");
    static_assert(!detail::is_vendor_element<T, bf16>,
                  "tessera: write MatrixView<bf16> (or const bf16): pointers to __nv_bfloat16 are accepted");
    static_assert(!detail::is_vendor_element<T, f8e4m3>,
                  "tessera: write MatrixView<f8e4m3> (or const f8e4m3): pointers to __nv_fp8_e4m3 are accepted");
    static_assert(!detail::is_vendor_element<T, f8e5m2>,
                  "tessera: write MatrixView<f8e5m2> (or const f8e5m2): pointers to __nv_fp8_e5m2 are accepted");
    static_assert(MatrixElement<detail::ElementOf<T>>,
                  "tessera: a matrix has elements of type f32, f16, bf16, tf32, f8e4m3 or f8e5m2 (or const ones)");
    static_assert(StorageOrder<Order>, "tessera: the storage order of a matrix is RowMajor or ColumnMajor");

public:
    /// The element type without const.
    using value_type = std::remove_const_t<T>;
    /// RowMajor or ColumnMajor.
    using order_type = Order;
    /// True for RowMajor.
    static constexpr bool is_row_major = std::is_same_v<Order, RowMajor>;

    /// An empty view of no device.
    MatrixView() = default;

    /// For the SDK: a view that was already checked.
    TESSERA_DETAIL_HOST_DEVICE constexpr MatrixView(T* data, std::int64_t rows, std::int64_t columns,
                                                    std::int64_t leading_dimension, int device) noexcept
        : data_(data), rows_(rows), columns_(columns), leading_dimension_(leading_dimension), device_(device)
    {}

    /// Views memory that the SDK did not allocate. The caller answers for its length; the SDK asks CUDA for its device.
    ///
    /// @param data               address of element (0, 0) in device memory
    /// @param rows               number of rows
    /// @param columns            number of columns
    /// @param leading_dimension  in elements, at least the length of a row (row-major) or column (column-major)
    /// @throws Error  `invalid_argument` for a negative extent or a leading dimension that is too small,
    ///                `size_overflow`, `wrong_memory` for memory that kernels cannot reach, `misaligned` for an address
    ///                that is not a multiple of the element's alignment
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
    /// Does the same for CUDA's own type of the same bits: `__half*` for f16, `__nv_bfloat16*` for bf16,
    /// `__nv_fp8_e4m3*` for f8e4m3, `__nv_fp8_e5m2*` for f8e5m2.
    template <detail::VendorElementOf<T> Vendor>
    static MatrixView from_raw_device_pointer(Vendor* data, std::int64_t rows, std::int64_t columns,
                                              std::int64_t leading_dimension,
                                              std::source_location caller = std::source_location::current())
    {
        return from_raw_device_pointer(reinterpret_cast<T*>(data), rows, columns, leading_dimension, caller);
    }

    /// Converts a view of writable elements to one of const elements.
    // A template only because nvcc warns about a plain operator where T is const already.
    template <std::same_as<const T> ConstElement>
        requires(!std::is_const_v<T>)
    TESSERA_DETAIL_HOST_DEVICE constexpr operator MatrixView<ConstElement, Order>() const noexcept
    {
        return {data_, rows_, columns_, leading_dimension_, device_};
    }

    /// Returns the address of element (0, 0) in device memory.
    TESSERA_DETAIL_HOST_DEVICE constexpr T* data() const noexcept { return data_; }
    /// Returns the number of rows.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t rows() const noexcept { return rows_; }
    /// Returns the number of columns.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t columns() const noexcept { return columns_; }
    /// Returns the leading dimension, in elements.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t leading_dimension() const noexcept { return leading_dimension_; }
    /// Returns the distance from one row to the next, in elements.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t row_stride() const noexcept
    {
        return is_row_major ? leading_dimension_ : 1;
    }
    /// Returns the distance from one column to the next, in elements.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t column_stride() const noexcept
    {
        return is_row_major ? 1 : leading_dimension_;
    }
    /// Returns true if there are no elements.
    TESSERA_DETAIL_HOST_DEVICE constexpr bool empty() const noexcept { return rows_ == 0 || columns_ == 0; }
    /// Returns the ordinal of the memory's device, -1 for an empty view of no device.
    TESSERA_DETAIL_HOST_DEVICE constexpr int device() const noexcept { return device_; }

    /// Returns a view of the same memory with rows and columns exchanged. Nothing is copied.
    TESSERA_DETAIL_HOST_DEVICE constexpr MatrixView<T, typename Order::Transposed> transposed() const noexcept
    {
        return {data_, columns_, rows_, leading_dimension_, device_};
    }

    /// Returns the block of rows [row, row + rows) and columns [column, column + columns). Nothing is copied.
    /// @throws Error  `out_of_range` if the block leaves the matrix; device code traps instead
    TESSERA_DETAIL_HOST_DEVICE MatrixView
    block(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns,
          [[maybe_unused]] std::source_location caller = std::source_location::current()) const
    {
        const detail::MatrixExtents all{rows_, columns_, leading_dimension_, is_row_major};
#ifdef __CUDA_ARCH__
        detail::trap_unless(all.has_block(row, column, rows, columns));
#else
        detail::require_block("MatrixView::block", all, row, column, rows, columns, caller);
#endif
        return {data_ + (row * row_stride() + column * column_stride()), rows, columns, leading_dimension_, device_};
    }

    /// Returns tile (tile_row, tile_column) of the grid of tile_rows x tile_columns tiles that covers the matrix. Tiles
    /// at the lower and right edges are smaller where the extents do not divide.
    /// @param tile_row, tile_column    position of the tile, in tiles
    /// @param tile_rows, tile_columns  extents of a tile, in elements
    /// @throws Error  `out_of_range` if the tile is outside, `invalid_argument` for a tile without elements; device
    ///                code traps instead
    TESSERA_DETAIL_HOST_DEVICE MatrixView
    tile(std::int64_t tile_row, std::int64_t tile_column, std::int64_t tile_rows, std::int64_t tile_columns,
         [[maybe_unused]] std::source_location caller = std::source_location::current()) const
    {
        const detail::MatrixExtents all{rows_, columns_, leading_dimension_, is_row_major};
        if (!all.has_tile(tile_row, tile_column, tile_rows, tile_columns)) {
#ifdef __CUDA_ARCH__
            __trap();
#else
            detail::raise_tile("MatrixView::tile", caller, tile_row, tile_column, tile_rows, tile_columns, rows_,
                               columns_);
#endif
        }
        const std::int64_t row = tile_row * tile_rows;
        const std::int64_t column = tile_column * tile_columns;
        const std::int64_t rows = tile_rows < rows_ - row ? tile_rows : rows_ - row;
        const std::int64_t columns = tile_columns < columns_ - column ? tile_columns : columns_ - column;
        return {data_ + (row * row_stride() + column * column_stride()), rows, columns, leading_dimension_, device_};
    }

#ifdef __CUDACC__
    /// Returns the element at (row, column). Device code only; an index outside of the matrix traps.
    __device__ T& operator()(std::int64_t row, std::int64_t column) const
    {
        // Converted to unsigned, an index below 0 is above every extent.
        detail::trap_unless(static_cast<std::uint64_t>(row) < static_cast<std::uint64_t>(rows_) &&
                            static_cast<std::uint64_t>(column) < static_cast<std::uint64_t>(columns_));
        return data_[row * row_stride() + column * column_stride()];
    }
#endif

private:
    T* data_ = nullptr;
    std::int64_t rows_ = 0;
    std::int64_t columns_ = 0;
    std::int64_t leading_dimension_ = 1;
    int device_ = -1;
};

/// Views an f32 matrix as tf32, so that tensor cores multiply it as it is. Nothing is copied or rounded: a tensor core
/// ignores the 13 low bits of each element.
///
/// That truncates, with a relative error of up to 2^-10, where `tf32(float)` rounds with one of 2^-11. A NaN that
/// differs from infinity only in those bits becomes infinity; CUDA makes no such NaN.
///
/// @code{.cpp}
/// Gemm::launch(stream, as_tf32(a.matrix(m, k)), as_tf32(b.matrix(k, n)), d.matrix(m, n));
/// @endcode
template <class T, class Order>
    requires std::same_as<std::remove_const_t<T>, f32>
TESSERA_DETAIL_HOST_DEVICE auto as_tf32(MatrixView<T, Order> matrix) noexcept
{
    using Element = std::conditional_t<std::is_const_v<T>, const tf32, tf32>;
    return MatrixView<Element, Order>(reinterpret_cast<Element*>(matrix.data()), matrix.rows(), matrix.columns(),
                                      matrix.leading_dimension(), matrix.device());
}

/// Matrices of equal extents in device memory that somebody else owns: `outer_count()` groups, `outer_stride()`
/// elements apart, of `count()` matrices each, `stride()` elements apart. A plain batch is one group. A stride of 0
/// uses one matrix for all, which only an input may do.
///
/// A value like a MatrixView, with the same rules of lifetime and thread safety.
///
/// @tparam T      the element type, as for MatrixView
/// @tparam Order  RowMajor or ColumnMajor
template <class T, class Order = RowMajor>
class BatchView {
public:
    /// The element type without const.
    using value_type = std::remove_const_t<T>;
    /// RowMajor or ColumnMajor.
    using order_type = Order;
    /// True for RowMajor.
    static constexpr bool is_row_major = std::is_same_v<Order, RowMajor>;

    /// A batch of no matrices.
    BatchView() = default;

    /// For the SDK: a view that was already checked.
    TESSERA_DETAIL_HOST_DEVICE constexpr BatchView(MatrixView<T, Order> first, std::int64_t count, std::int64_t stride,
                                                   std::int64_t outer_count = 1, std::int64_t outer_stride = 0) noexcept
        : first_(first), count_(count), stride_(stride), outer_count_(outer_count), outer_stride_(outer_stride)
    {}

    /// Views memory that the SDK did not allocate. The caller answers for its length; the SDK asks CUDA for its device.
    ///
    /// @param data    address of the first element in device memory
    /// @param layout  extents, counts and strides
    /// @throws Error  `invalid_argument`, `size_overflow`, `wrong_memory`, `misaligned`, as for MatrixView
    static BatchView from_raw_device_pointer(T* data, const BatchLayout& layout,
                                             std::source_location caller = std::source_location::current())
    {
        constexpr std::string_view operation = "BatchView::from_raw_device_pointer";
        const auto all = detail::require_batch_extents(operation, layout, is_row_major, sizeof(T), caller);
        const bool empty = all.matrix.rows == 0 || all.matrix.columns == 0 || all.count == 0 || all.outer_count == 0;
        const int device = empty ? -1 : detail::device_of_elements(data, alignof(T), operation, caller);
        return {{data, all.matrix.rows, all.matrix.columns, all.matrix.leading_dimension, device},
                all.count,
                all.stride,
                all.outer_count,
                all.outer_stride};
    }
    /// Does the same for CUDA's own type of the same bits, as for MatrixView.
    template <detail::VendorElementOf<T> Vendor>
    static BatchView from_raw_device_pointer(Vendor* data, const BatchLayout& layout,
                                             std::source_location caller = std::source_location::current())
    {
        return from_raw_device_pointer(reinterpret_cast<T*>(data), layout, caller);
    }

    /// Converts a batch of writable elements to one of const elements.
    // A template only because nvcc warns about a plain operator where T is const already.
    template <std::same_as<const T> ConstElement>
        requires(!std::is_const_v<T>)
    TESSERA_DETAIL_HOST_DEVICE constexpr operator BatchView<ConstElement, Order>() const noexcept
    {
        return {first_, count_, stride_, outer_count_, outer_stride_};
    }

    /// Returns the first matrix; all others have its extents.
    TESSERA_DETAIL_HOST_DEVICE constexpr const MatrixView<T, Order>& first() const noexcept { return first_; }
    /// Returns the number of matrices in a group.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t count() const noexcept { return count_; }
    /// Returns the distance from one matrix of a group to the next, in elements.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t stride() const noexcept { return stride_; }
    /// Returns the number of groups.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t outer_count() const noexcept { return outer_count_; }
    /// Returns the distance from one group to the next, in elements.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t outer_stride() const noexcept { return outer_stride_; }
    /// Returns the number of matrices of all groups together.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::int64_t total_count() const noexcept { return count_ * outer_count_; }
    /// Returns the ordinal of the memory's device, -1 for an empty view of no device.
    TESSERA_DETAIL_HOST_DEVICE constexpr int device() const noexcept { return first_.device(); }
    /// Returns a view of the same memory with rows and columns of each matrix exchanged. Nothing is copied.
    TESSERA_DETAIL_HOST_DEVICE constexpr BatchView<T, typename Order::Transposed> transposed() const noexcept
    {
        return {first_.transposed(), count_, stride_, outer_count_, outer_stride_};
    }

    /// Returns matrix `index` of all matrices, counted through the first group, then the second, and so on.
    /// @throws Error  `out_of_range`; device code traps instead
    TESSERA_DETAIL_HOST_DEVICE MatrixView<T, Order> at(
        std::int64_t index, [[maybe_unused]] std::source_location caller = std::source_location::current()) const
    {
        if (index < 0 || index >= total_count()) {
#ifdef __CUDA_ARCH__
            __trap();
#else
            detail::raise_batch_index(index, total_count(), caller);
#endif
        }
        return outer_count_ == 1 ? matrix(0, index) : matrix(index / count_, index % count_);
    }
    /// Returns matrix `inner` of group `outer`.
    /// @throws Error  `out_of_range`; device code traps instead
    TESSERA_DETAIL_HOST_DEVICE MatrixView<T, Order> at(
        std::int64_t outer, std::int64_t inner,
        [[maybe_unused]] std::source_location caller = std::source_location::current()) const
    {
        if (outer < 0 || outer >= outer_count_ || inner < 0 || inner >= count_) {
#ifdef __CUDA_ARCH__
            __trap();
#else
            detail::raise_batch_index(outer, inner, outer_count_, count_, caller);
#endif
        }
        return matrix(outer, inner);
    }

private:
    TESSERA_DETAIL_HOST_DEVICE constexpr MatrixView<T, Order> matrix(std::int64_t outer,
                                                                     std::int64_t inner) const noexcept
    {
        return {first_.data() + (outer * outer_stride_ + inner * stride_), first_.rows(), first_.columns(),
                first_.leading_dimension(), first_.device()};
    }

    MatrixView<T, Order> first_;
    std::int64_t count_ = 0;
    std::int64_t stride_ = 0;
    std::int64_t outer_count_ = 1;
    std::int64_t outer_stride_ = 0;
};

/// Views a batch of f32 matrices as tf32, as above.
template <class T, class Order>
    requires std::same_as<std::remove_const_t<T>, f32>
TESSERA_DETAIL_HOST_DEVICE auto as_tf32(BatchView<T, Order> batch) noexcept
{
    return BatchView(as_tf32(batch.first()), batch.count(), batch.stride(), batch.outer_count(), batch.outer_stride());
}

namespace detail {

/// Implements `DeviceSpan::matrix` and `DeviceBuffer::matrix`; `operation` tells them apart in a message.
template <class Order, class T>
MatrixView<ElementOf<T>, Order> checked_matrix(std::string_view operation, T* data, std::size_t size, int device,
                                               std::int64_t rows, std::int64_t columns, std::int64_t leading_dimension,
                                               const std::source_location& caller)
{
    require_matrix_fits(operation, {rows, columns, leading_dimension, std::is_same_v<Order, RowMajor>}, sizeof(T), size,
                        caller);
    return {reinterpret_cast<ElementOf<T>*>(data), rows, columns, leading_dimension, device};
}

/// Returns the leading dimension of a matrix without gaps.
template <class Order>
constexpr std::int64_t packed_leading_dimension(std::int64_t rows, std::int64_t columns) noexcept
{
    const std::int64_t vector_size = std::is_same_v<Order, RowMajor> ? columns : rows;
    return vector_size > 1 ? vector_size : 1;
}

/// Implements `matrices` of both.
template <class Order, class T>
BatchView<ElementOf<T>, Order> checked_matrices(std::string_view operation, T* data, std::size_t size, int device,
                                                const BatchLayout& layout, const std::source_location& caller)
{
    const auto all = require_batch_fits(operation, layout, std::is_same_v<Order, RowMajor>, sizeof(T), size, caller);
    auto* const elements = reinterpret_cast<ElementOf<T>*>(data);
    return {{elements, all.matrix.rows, all.matrix.columns, all.matrix.leading_dimension, device},
            all.count,
            all.stride,
            all.outer_count,
            all.outer_stride};
}

}  // namespace detail

}  // namespace tessera
