#pragma once

/// @file
/// @ingroup tile_gemm
/// @brief Operands of an epilogue of your own for `Gemm::launch`: `per_column`, `per_row`, `per_element`.

#include "tessera/detail/language.hpp"

#include <cstdint>
#include <source_location>
#include <type_traits>

#include "tessera/detail/refused.hpp"
#include "tessera/device_span.hpp"
#include "tessera/matrix_view.hpp"
#include "tessera/stream.hpp"

namespace tessera::tile {

namespace detail {

/// Checks a vector of an epilogue. @throws Error  `shape_mismatch`
void require_epilogue_vector(const char* name, std::size_t size, std::int64_t extent,
                             const std::source_location& caller);
/// Checks a matrix of an epilogue. @throws Error  `shape_mismatch`
void require_epilogue_matrix(std::int64_t rows, std::int64_t columns, std::int64_t count, std::int64_t d_rows,
                             std::int64_t d_columns, std::int64_t d_count, const std::source_location& caller);

/// Fails to compile, with the sentence for what was passed as a vector.
template <class Other>
constexpr void refuse_as_vector()
{
    static_assert(tessera::detail::always_false<Other>,
                  "tessera: per_column and per_row take a vector on the device: pass tile::per_column(buffer.span())");
}

/// Returns a single matrix as a batch.
template <class T, class Order>
BatchView<T, Order> as_batch(const MatrixView<T, Order>& matrix)
{
    return BatchView<T, Order>(matrix, 1, 0, 1, 0);
}
template <class T, class Order>
BatchView<T, Order> as_batch(const BatchView<T, Order>& matrices)
{
    return matrices;
}

/// The tiles of a product with an epilogue.
enum class GemmTile : std::uint8_t {
    wide,    // 128 x 256
    square,  // 128 x 128
    small    // 64 x 128
};
/// Returns the tile with which a product is probably fastest.
GemmTile choose_gemm_tile(StreamRef stream, std::int64_t rows, std::int64_t columns, std::int64_t count,
                          const std::source_location& caller);

}  // namespace detail

/// A vector with a value for each column of D. Made by `per_column`.
template <class T>
class PerColumn {
public:
    /// For the library.
    explicit PerColumn(const DeviceSpan<const T>& values) : values_(values) {}
    /// For the library.
    MatrixView<const T> view() const
    {
        const auto size = static_cast<std::int64_t>(values_.size());
        return MatrixView<const T>::from_raw_device_pointer(values_.data(), 1, size, size > 0 ? size : 1);
    }
    /// For the library.
    template <class D>
    void require_shape(const D& d, const std::source_location& caller) const
    {
        detail::require_epilogue_vector("per_column", values_.size(), d.first().columns(), caller);
    }

private:
    DeviceSpan<const T> values_;
};

/// A vector with a value for each row of D. Made by `per_row`.
template <class T>
class PerRow {
public:
    /// For the library.
    explicit PerRow(const DeviceSpan<const T>& values) : values_(values) {}
    /// For the library.
    MatrixView<const T, ColumnMajor> view() const
    {
        const auto size = static_cast<std::int64_t>(values_.size());
        return MatrixView<const T, ColumnMajor>::from_raw_device_pointer(values_.data(), size, 1, size > 0 ? size : 1);
    }
    /// For the library.
    template <class D>
    void require_shape(const D& d, const std::source_location& caller) const
    {
        detail::require_epilogue_vector("per_row", values_.size(), d.first().rows(), caller);
    }

private:
    DeviceSpan<const T> values_;
};

/// A matrix with a value for each element of D; a single one serves all matrices of a batch. Made by `per_element`.
template <class T, class Order>
class PerElement {
public:
    /// For the library.
    explicit PerElement(const BatchView<const T, Order>& values) : values_(values) {}
    /// For the library.
    const BatchView<const T, Order>& view() const { return values_; }
    /// For the library.
    template <class D>
    void require_shape(const D& d, const std::source_location& caller) const
    {
        detail::require_epilogue_matrix(values_.first().rows(), values_.first().columns(), values_.total_count(),
                                        d.first().rows(), d.first().columns(), d.total_count(), caller);
    }

private:
    BatchView<const T, Order> values_;
};

/// Gives an epilogue a value for each column of D.
template <class T>
PerColumn<std::remove_const_t<T>> per_column(const DeviceSpan<T>& values)
{
    return PerColumn<std::remove_const_t<T>>(values);
}
/// Gives an epilogue a value for each row of D.
template <class T>
PerRow<std::remove_const_t<T>> per_row(const DeviceSpan<T>& values)
{
    return PerRow<std::remove_const_t<T>>(values);
}
/// Gives an epilogue a value for each element of D.
template <class T, class Order>
PerElement<std::remove_const_t<T>, Order> per_element(const MatrixView<T, Order>& values)
{
    return PerElement<std::remove_const_t<T>, Order>(
        detail::as_batch(MatrixView<const std::remove_const_t<T>, Order>(values)));
}
/// Gives an epilogue a value for each element of the matrices of a batch.
template <class T, class Order>
PerElement<std::remove_const_t<T>, Order> per_element(const BatchView<T, Order>& values)
{
    return PerElement<std::remove_const_t<T>, Order>(values);
}

/// Refuses to compile for any other type, with a message that says what to pass.
template <class Other>
PerColumn<float> per_column(const Other& /*other*/)
{
    detail::refuse_as_vector<Other>();
    return PerColumn<float>({});
}
/// Refuses to compile for any other type, with a message that says what to pass.
template <class Other>
PerRow<float> per_row(const Other& /*other*/)
{
    detail::refuse_as_vector<Other>();
    return PerRow<float>({});
}
/// Refuses to compile for any other type, with a message that says what to pass.
template <class Other>
PerColumn<float> per_element(const Other& /*other*/)
{
    static_assert(tessera::detail::always_false<Other>,
                  "tessera: per_element takes a matrix: pass tile::per_element(buffer.matrix(rows, columns))");
    return PerColumn<float>({});
}

namespace detail {

template <class X>
inline constexpr bool is_typed_view = false;
template <class T, class Order>
inline constexpr bool is_typed_view<MatrixView<T, Order>> = true;
template <class T, class Order>
inline constexpr bool is_typed_view<BatchView<T, Order>> = true;

template <class X>
inline constexpr bool is_epilogue_operand = false;
template <class T>
inline constexpr bool is_epilogue_operand<PerColumn<T>> = true;
template <class T>
inline constexpr bool is_epilogue_operand<PerRow<T>> = true;
template <class T, class Order>
inline constexpr bool is_epilogue_operand<PerElement<T, Order>> = true;

}  // namespace detail

}  // namespace tessera::tile
