#pragma once

/// Copies between matrices in device memory and elements on the host, whatever the leading dimension. Not part of
/// tessera.hpp: include it where it is needed.
///
///     copy_from_host(stream, a.matrix(rows, columns, 32), elements);  // 32: rows with gaps, which keep what they hold
///     std::vector<float> block = to_vector(stream, d.matrix(m, n).block(8, 0, 4, n));
///
/// On the host the elements have no gaps and lie in the order of the view: row by row for a row-major one, column by
/// column for a column-major one. One copy on the stream, ordered after what was enqueued there before; each function
/// blocks until it is done. Any thread may call them.

#include <cstddef>
#include <gsl/span>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tessera/matrix_view.hpp"
#include "tessera/stream.hpp"

namespace tessera {

namespace detail {

/// One end is device memory of `device`, the other `host_size` elements on the host.
void copy_matrix_to_device(StreamRef stream, const MatrixExtents& extents, std::size_t element_bytes, void* target,
                           int device, const void* host, std::size_t host_size, const std::source_location& caller);
void copy_matrix_to_host(std::string_view operation, StreamRef stream, const MatrixExtents& extents,
                         std::size_t element_bytes, const void* source, int device, void* host, std::size_t host_size,
                         const std::source_location& caller);

template <class T, class Order>
MatrixExtents extents_of(const MatrixView<T, Order>& matrix) noexcept
{
    return {matrix.rows(), matrix.columns(), matrix.leading_dimension(), MatrixView<T, Order>::is_row_major};
}

}  // namespace detail

/// Copies `elements`, rows * columns of them, into `target`.
/// @throws Error `shape_mismatch` if there are more or fewer, `device_mismatch`, `capture_violation`
template <class T, class Order>
    requires(!std::is_const_v<T>)
void copy_from_host(StreamRef stream, MatrixView<T, Order> target, std::type_identity_t<gsl::span<const T>> elements,
                    std::source_location caller = std::source_location::current())
{
    detail::copy_matrix_to_device(stream, detail::extents_of(target), sizeof(T), target.data(), target.device(),
                                  elements.data(), elements.size(), caller);
}

/// Copies `source` to `elements`, rows * columns of them.
/// @throws Error `shape_mismatch` if there are more or fewer, `device_mismatch`, `capture_violation`
template <class T, class Order>
void copy_to_host(StreamRef stream, MatrixView<T, Order> source,
                  std::type_identity_t<gsl::span<std::remove_const_t<T>>> elements,
                  std::source_location caller = std::source_location::current())
{
    detail::copy_matrix_to_host("copy_to_host", stream, detail::extents_of(source), sizeof(T), source.data(),
                                source.device(), elements.data(), elements.size(), caller);
}

/// All elements of `source`. @throws Error `device_mismatch`, `capture_violation`
template <class T, class Order>
std::vector<std::remove_const_t<T>> to_vector(StreamRef stream, MatrixView<T, Order> source,
                                              std::source_location caller = std::source_location::current())
{
    std::vector<std::remove_const_t<T>> elements(static_cast<std::size_t>(source.rows()) *
                                                 static_cast<std::size_t>(source.columns()));
    detail::copy_matrix_to_host("to_vector", stream, detail::extents_of(source), sizeof(T), source.data(),
                                source.device(), elements.data(), elements.size(), caller);
    return elements;
}

}  // namespace tessera
