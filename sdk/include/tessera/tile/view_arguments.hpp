#pragma once

/// @file
/// @ingroup tile_views
/// @brief What inputs and outputs are made of on the host: matrix views. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "tessera/detail/refused.hpp"
#include "tessera/error.hpp"
#include "tessera/matrix_view.hpp"
#include "tessera/tile/matrix.hpp"
#include "tessera/tile/staged_map.hpp"

namespace tessera::tile::detail {

/// True if X is a view of elements T, or becomes one.
template <class X, class T, class Order>
concept ViewOf =
    std::is_convertible_v<const X&, MatrixView<T, Order>> || std::is_convertible_v<const X&, BatchView<T, Order>>;

/// Facts of views, for sentences.
template <class X>
struct view_facts {
    static constexpr bool is_view = false;
};
template <class T, class Order>
struct view_facts<MatrixView<T, Order>> {
    static constexpr bool is_view = true;
    using element = T;
    using order = Order;
};
template <class T, class Order>
struct view_facts<BatchView<T, Order>> : view_facts<MatrixView<T, Order>> {};

/// Says why an input or output of elements T is no view of an X.
template <class X, class T, class Order>
constexpr void refuse_as_matrix()
{
    using Facts = view_facts<X>;
    if constexpr (!Facts::is_view) {
        static_assert(
            tessera::detail::always_false<X>,
            "tessera: an input or output views a MatrixView or a BatchView: pass buffer.matrix(rows, columns)");
    } else if constexpr (!std::is_same_v<std::remove_const_t<typename Facts::element>, std::remove_const_t<T>>) {
        static_assert(tessera::detail::always_false<X>,
                      "tessera: the matrix has other elements than its input or output: name its type, Input<T, Rows, "
                      "Columns>; as_tf32() views float as tf32");
    } else if constexpr (!std::is_same_v<typename Facts::order, Order>) {
        static_assert(
            tessera::detail::always_false<X>,
            "tessera: the matrix has another storage order than its input or output: name its order, Input<T, Rows, "
            "Columns, ColumnMajor>");
    } else {
        static_assert(
            tessera::detail::always_false<X>,
            "tessera: an output cannot be a view of const elements: take the view from a buffer that is not const");
    }
}

/// Checks a matrix against the extents that a program is compiled for; -1 is any.
/// @throws Error  `shape_mismatch`
void require_extents(const char* operation, std::int64_t compiled_rows, std::int64_t compiled_columns,
                     std::int64_t rows, std::int64_t columns, const std::source_location& caller);
template <class E>
void require_extents(const char* operation, std::int64_t rows, std::int64_t columns, const std::source_location& caller)
{
    if constexpr (!std::is_same_v<E, Extents<>>) {
        require_extents(operation, E::rows, E::columns, rows, columns, caller);
    }
}

/// Returns true if all lines of a batch begin at multiples of 16 bytes. Strides are in bytes.
inline bool begin_at_vectors(const void* data, std::uint64_t line_stride, std::uint64_t matrix_stride, bool single_line)
{
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && matrix_stride % 16 == 0 &&
           (single_line || line_stride % 16 == 0);
}

template <class T, class Element, class Order>
Memory<T, Order> memory_of(const MatrixView<Element, Order>& view, std::int64_t batches = 1,
                           std::int64_t batch_stride = 0)
{
    const bool single_line = (Memory<T, Order>::row_major ? view.rows() : view.columns()) <= 1;
    const auto stride = static_cast<std::uint64_t>(view.leading_dimension()) * sizeof(T);
    const auto from_batch = static_cast<std::uint64_t>(batch_stride) * sizeof(T);
    return {.data = view.data(),
            .rows = view.rows(),
            .columns = view.columns(),
            .leading_dimension = view.leading_dimension(),
            .batches = batches,
            .batch_stride = batch_stride,
            .device = view.device(),
            .in_vectors = begin_at_vectors(view.data(), stride, from_batch, single_line)};
}
template <class T, class Element, class Order>
Memory<T, Order> memory_of(const BatchView<Element, Order>& view, const std::source_location& caller)
{
    const bool is_one_level = view.outer_count() == 1 || view.outer_stride() == view.count() * view.stride();
    if (!is_one_level) {
        tessera::detail::raise(
            ErrorCode::invalid_argument, "tile::Input", caller,
            "a tile program takes batches at one distance: this view has groups of batches at another",
            "one launch for each group");
    }
    return memory_of<T>(view.first(), view.total_count(), view.total_count() == 1 ? 0 : view.stride());
}

}  // namespace tessera::tile::detail
