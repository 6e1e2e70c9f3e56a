#pragma once

/// @file
/// @ingroup device_outputs
/// @brief Race-free output from a kernel: each thread writes only its own element.
///
/// `ThreadIndex` and `ThreadIndex2D` prove which element is the calling thread's own. `DisjointSpan` and
/// `DisjointMatrix` can be written only with this proof. Two threads of a grid never have the same index, so no two of
/// them can write the same element.
///
/// @code{.cpp}
/// __global__ void scale(DisjointSpan<float> out, DeviceSpan<const float> in, float factor)
/// {
///     const auto index = ThreadIndex::in_grid();
///     if (out.contains(index)) out[index] = factor * in[index.value()];
/// }
///
/// __global__ void transpose(DisjointMatrix<float> out, MatrixView<const float> in)
/// {
///     const auto index = ThreadIndex2D::in_grid();
///     if (out.contains(index)) out[index] = in(index.column(), index.row());
/// }
///
/// void run_transpose(StreamRef stream, MatrixView<float> out, MatrixView<float> in)
/// {
///     const auto config = LaunchConfig::covering(stream, out);
///     launch(transpose, config, DisjointMatrix(out), MatrixView<const float>(in));
/// }
/// @endcode
///
/// The host makes the span, and device code writes through it. Spans are values; an index belongs to its thread. It
/// costs an address and a compare.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tessera/device_span.hpp"

namespace tessera {

template <class T>
class DeviceBuffer;
template <class T>
class DisjointSpan;
template <class T, class Order>
class DisjointMatrix;

#ifdef __CUDACC__

/// The calling thread's position among all threads of the grid: unique, from 0 to size - 1. Neighbouring threads of a
/// warp have neighbouring values. Only `in_grid()` makes one; it cannot be made from an integer or copied, so whoever
/// has one is the thread that it names.
///
/// @code{.cpp}
/// __global__ void fill(DisjointSpan<float> out, float value)  // a grid of any size
/// {
///     auto index = ThreadIndex::in_grid();
///     for (; out.contains(index); index.advance()) out[index] = value;
/// }
/// @endcode
class ThreadIndex {
public:
    /// Returns the calling thread's own index.
    __device__ static ThreadIndex in_grid()
    {
        const std::size_t block =
            blockIdx.x + std::size_t{gridDim.x} * (blockIdx.y + std::size_t{gridDim.y} * blockIdx.z);
        const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
        return ThreadIndex(block * threads + thread);
    }

    ThreadIndex(const ThreadIndex&) = delete;
    ThreadIndex& operator=(const ThreadIndex&) = delete;

    /// Returns the index as a number, for reading elsewhere.
    __device__ std::size_t value() const { return value_; }

    /// Advances by the number of threads in the grid, for loops over more elements than threads. The index stays
    /// unique, because all threads advance by the same amount.
    __device__ void advance()
    {
        value_ += std::size_t{gridDim.x} * gridDim.y * gridDim.z * blockDim.x * blockDim.y * blockDim.z;
    }

private:
    __device__ explicit ThreadIndex(std::size_t value) : value_(value) {}

    std::size_t value_;
};

/// The calling thread's position among all threads of the grid as (row, column): unique. The x dimension of the grid
/// runs along the columns, so that neighbouring threads of a warp have neighbouring columns; y, and after it z, runs
/// along the rows. Only `in_grid()` makes one; it cannot be made from integers or copied.
///
/// This loop handles a matrix larger than the grid and touches each element once:
///
/// @code{.cpp}
/// __global__ void clear(DisjointMatrix<float> out)
/// {
///     auto index = ThreadIndex2D::in_grid();
///     for (; index.row() < out.rows(); index.next_row()) {
///         for (; index.column() < out.columns(); index.next_column()) out[index] = 0;
///     }
/// }
/// @endcode
class ThreadIndex2D {
public:
    /// Returns the calling thread's own index.
    __device__ static ThreadIndex2D in_grid()
    {
        const std::int64_t layer = std::int64_t{blockIdx.z} * blockDim.z + threadIdx.z;
        return ThreadIndex2D(layer * grid_height() + std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y,
                             first_column());
    }

    ThreadIndex2D(const ThreadIndex2D&) = delete;
    ThreadIndex2D& operator=(const ThreadIndex2D&) = delete;

    /// Returns the row as a number, for reading elsewhere.
    __device__ std::int64_t row() const { return row_; }
    /// Returns the column as a number, for reading elsewhere.
    __device__ std::int64_t column() const { return column_; }

    /// Moves right by as many columns as the grid has threads in x. The index stays unique: all threads move alike.
    __device__ void next_column() { column_ += std::int64_t{gridDim.x} * blockDim.x; }
    /// Moves down by as many rows as the grid has threads in y and z, and back to the thread's first column.
    __device__ void next_row()
    {
        row_ += grid_height() * gridDim.z * blockDim.z;
        column_ = first_column();
    }

private:
    __device__ ThreadIndex2D(std::int64_t row, std::int64_t column) : row_(row), column_(column) {}
    __device__ static std::int64_t first_column() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
    __device__ static std::int64_t grid_height() { return std::int64_t{gridDim.y} * blockDim.y; }

    std::int64_t row_;
    std::int64_t column_;
};

#endif

/// Device memory that is written only element by element, each by the one thread whose index it is. Made on the host
/// from a whole buffer or a part of it. Does not own the memory and must not outlive it.
///
/// Two DisjointSpans of the same memory, and reads of it through a DeviceSpan in the same kernel, are not prevented.
///
/// @tparam T  the element type, not const
template <class T>
class DisjointSpan {
    static_assert(!std::is_const_v<T>, "tessera: DisjointSpan<T> is for writing: use DeviceSpan<const T> to read");

public:
    /// All elements of `buffer`, which must outlive the span.
    explicit DisjointSpan(DeviceBuffer<T>& buffer) noexcept : DisjointSpan(buffer.span()) {}
    /// The elements of `memory`, for example a part of a buffer.
    explicit DisjointSpan(DeviceSpan<T> memory) noexcept : memory_(memory) {}

    /// Returns the number of elements.
    TESSERA_DETAIL_HOST_DEVICE std::size_t size() const noexcept { return memory_.size(); }
    /// Returns the ordinal of the memory's device.
    TESSERA_DETAIL_HOST_DEVICE int device() const noexcept { return memory_.device(); }

#ifdef __CUDACC__
    /// Returns true if the thread has an element here. Grids are rounded up to whole CTAs, so some threads have none.
    __device__ bool contains(const ThreadIndex& index) const { return index.value() < memory_.size(); }

    /// Returns the calling thread's own element. Traps if it has none: call contains() first.
    __device__ T& operator[](const ThreadIndex& index) const { return memory_[index.value()]; }

    /// Refuses to compile: an integer proves nothing.
    template <std::integral Index>
    __device__ T& operator[](Index) const
    {
        static_assert(!std::is_same_v<Index, Index>,
                      "tessera: a DisjointSpan is written with a ThreadIndex (the thread's own element), not with an "
                      "integer");
    }
#endif

private:
    DeviceSpan<T> memory_;
};

/// A matrix that is written only element by element, each by the one thread whose index it is. Made on the host from a
/// view. Does not own the memory and must not outlive it.
///
/// For a column-major matrix, `DisjointMatrix(view.transposed())` makes neighbouring threads write neighbouring
/// addresses.
///
/// Two DisjointMatrices of the same memory, and reads of it through a MatrixView in the same kernel, are not prevented.
///
/// @tparam T      the element type, not const
/// @tparam Order  RowMajor or ColumnMajor
template <class T, class Order = RowMajor>
class DisjointMatrix {
    static_assert(!std::is_const_v<T>, "tessera: DisjointMatrix<T> is for writing: use MatrixView<const T> to read");

public:
    /// All elements of `matrix`.
    explicit DisjointMatrix(MatrixView<T, Order> matrix) noexcept : matrix_(matrix) {}

    /// Returns the number of rows.
    TESSERA_DETAIL_HOST_DEVICE std::int64_t rows() const noexcept { return matrix_.rows(); }
    /// Returns the number of columns.
    TESSERA_DETAIL_HOST_DEVICE std::int64_t columns() const noexcept { return matrix_.columns(); }
    /// Returns the ordinal of the memory's device.
    TESSERA_DETAIL_HOST_DEVICE int device() const noexcept { return matrix_.device(); }

#ifdef __CUDACC__
    /// Returns true if the thread has an element here. Grids are rounded up to whole CTAs, so some threads have none.
    __device__ bool contains(const ThreadIndex2D& index) const
    {
        return index.row() < matrix_.rows() && index.column() < matrix_.columns();
    }

    /// Returns the calling thread's own element. Traps if it has none: call contains() first.
    __device__ T& operator[](const ThreadIndex2D& index) const { return matrix_(index.row(), index.column()); }

    /// Refuses to compile: integers prove nothing.
    template <std::integral Row, std::integral Column>
    __device__ T& operator()(Row, Column) const
    {
        static_assert(!std::is_same_v<Row, Row>,
                      "tessera: a DisjointMatrix is written with a ThreadIndex2D (the thread's own element), not with "
                      "integers");
    }
#endif

private:
    MatrixView<T, Order> matrix_;
};

/// Deduces `T` and the order from a view.
template <class T, class Order>
DisjointMatrix(MatrixView<T, Order>) -> DisjointMatrix<T, Order>;

/// Deduces `T` from a buffer.
template <class T>
DisjointSpan(DeviceBuffer<T>&) -> DisjointSpan<T>;
/// Deduces `T` from a span.
template <class T>
DisjointSpan(DeviceSpan<T>) -> DisjointSpan<T>;

}  // namespace tessera
