#pragma once

/// @file
/// @ingroup host_memory
/// @brief Copies between matrices in device memory and elements on the host, with any leading dimension. Not part of
/// tessera.hpp.
///
/// @code{.cpp}
/// copy_from_host(stream, a.matrix(rows, columns, 32), elements);  // gaps are not written
/// std::vector<float> block = to_vector(stream, d.matrix(m, n).block(8, 0, 4, n));
/// @endcode
///
/// On the host the elements have no gaps and are in the order of the view: row by row for a row-major one, column by
/// column for a column-major one.
///
/// @par Synchronization
/// Each function enqueues one copy, ordered after all earlier work on the stream, and blocks until it is done.
///
/// @par Thread safety
/// Any thread may call these functions.

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

/// One end is device memory of `device`, the other has `host_size` elements on the host.
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

/// Copies `elements` from the host into `target`. Blocks until done.
///
/// @param stream    a stream of the matrix's device; the copy is ordered after its earlier work
/// @param target    the matrix to write; gaps between its rows (or columns) keep their contents
/// @param elements  rows * columns elements in the order of `target`
/// @throws Error  `shape_mismatch` if there are more or fewer elements, `device_mismatch`, `capture_violation` while
///                the stream is being captured
template <class T, class Order>
    requires(!std::is_const_v<T>)
void copy_from_host(StreamRef stream, MatrixView<T, Order> target, std::type_identity_t<gsl::span<const T>> elements,
                    std::source_location caller = std::source_location::current())
{
    detail::copy_matrix_to_device(stream, detail::extents_of(target), sizeof(T), target.data(), target.device(),
                                  elements.data(), elements.size(), caller);
}

/// Copies `source` to `elements` on the host. Blocks until done.
///
/// @param stream    a stream of the matrix's device; the copy is ordered after its earlier work
/// @param source    the matrix to read
/// @param elements  room for rows * columns elements, in the order of `source`
/// @throws Error  `shape_mismatch` if there are more or fewer elements, `device_mismatch`, `capture_violation` while
///                the stream is being captured
template <class T, class Order>
void copy_to_host(StreamRef stream, MatrixView<T, Order> source,
                  std::type_identity_t<gsl::span<std::remove_const_t<T>>> elements,
                  std::source_location caller = std::source_location::current())
{
    detail::copy_matrix_to_host("copy_to_host", stream, detail::extents_of(source), sizeof(T), source.data(),
                                source.device(), elements.data(), elements.size(), caller);
}

/// Returns all elements of `source`, in its order. Blocks until they are copied.
/// @throws Error  `device_mismatch`, `capture_violation` while the stream is being captured
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
