#pragma once

/// @file
/// @ingroup host_views
/// @brief Conversions between views and mdspans: `cuda::std::mdspan`, and `std::mdspan` where available. Not part of
/// tessera.hpp.
///
/// `cuda::std::mdspan` is that of CCCL and works on the host and in kernels. `std::mdspan` needs a standard library
/// that has one (`__cpp_lib_mdspan`).
///
/// @code{.cpp}
/// auto c = to_cuda_mdspan(d.matrix(m, n));
/// auto view = from_raw_device_mdspan(weights);                // layout_right
/// auto strided = from_raw_device_mdspan<ColumnMajor>(block);  // layout_stride
/// @endcode
///
/// `to_cuda_mdspan` returns one of `layout_stride` with extents of 64 bits. In the other direction, `layout_right` is
/// RowMajor and `layout_left` ColumnMajor; for `layout_stride` the order must be given, and is checked.
///
/// An mdspan of `layout_stride` is a matrix if one of its strides is 1. Nothing is copied.
///
/// @par Thread safety
/// The functions keep no state: any thread may call them.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <version>

#if __has_include(<cuda/std/mdspan>)
#include <cuda/std/array>
#include <cuda/std/mdspan>
#define TESSERA_DETAIL_HAS_CUDA_MDSPAN
#endif
#ifdef __cpp_lib_mdspan
#include <array>
#include <mdspan>
#endif

#include "tessera/detail/host_device.hpp"
#include "tessera/matrix_view.hpp"

namespace tessera {

namespace detail {

/// Returns the leading dimension of an mdspan with these strides, in this order. @throws Error  `invalid_argument`
std::int64_t require_unit_stride(std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                                 std::int64_t column_stride, bool row_major, const std::source_location& caller);

/// The order that an mdspan's layout implies, or void if it implies none.
template <class Layout>
struct OrderOfLayout {
    using type = void;
};
#ifdef TESSERA_DETAIL_HAS_CUDA_MDSPAN
template <>
struct OrderOfLayout<cuda::std::layout_right> {
    using type = RowMajor;
};
template <>
struct OrderOfLayout<cuda::std::layout_left> {
    using type = ColumnMajor;
};
#endif
#ifdef __cpp_lib_mdspan
template <>
struct OrderOfLayout<std::layout_right> {
    using type = RowMajor;
};
template <>
struct OrderOfLayout<std::layout_left> {
    using type = ColumnMajor;
};
#endif

template <class Span>
concept MatrixSpan = requires(const Span& span) {
    typename Span::element_type;
    typename Span::layout_type;
    { Span::rank() } -> std::convertible_to<std::size_t>;
    span.extent(0);
    span.data_handle();
};

}  // namespace detail

#ifdef TESSERA_DETAIL_HAS_CUDA_MDSPAN
/// Returns the matrix as a CCCL mdspan. It is indexed (row, column), in kernels with `[...]` or `(...)` as in CCCL,
/// without the bounds checks of a view. It must not outlive the memory.
template <class T, class Order>
TESSERA_DETAIL_HOST_DEVICE auto to_cuda_mdspan(const MatrixView<T, Order>& matrix)
{
    using Extents = cuda::std::dextents<std::int64_t, 2>;
    using Mapping = cuda::std::layout_stride::mapping<Extents>;
    return cuda::std::mdspan<T, Extents, cuda::std::layout_stride>(
        matrix.data(), Mapping(Extents(matrix.rows(), matrix.columns()),
                               cuda::std::array<std::int64_t, 2>{matrix.row_stride(), matrix.column_stride()}));
}
#endif

#ifdef __cpp_lib_mdspan
/// Returns the matrix as an mdspan of the standard library, for its extents and strides, and for libraries that take
/// one. Its elements are device memory: the host must not access them. It must not outlive the memory.
template <class T, class Order>
auto to_std_mdspan(const MatrixView<T, Order>& matrix)
{
    using Extents = std::dextents<std::int64_t, 2>;
    using Mapping = std::layout_stride::mapping<Extents>;
    return std::mdspan<T, Extents, std::layout_stride>(
        matrix.data(), Mapping(Extents(matrix.rows(), matrix.columns()),
                               std::array<std::int64_t, 2>{matrix.row_stride(), matrix.column_stride()}));
}
#endif

/// Views the device memory of a two-dimensional mdspan of either library. The caller answers for its length; the
/// SDK asks CUDA for its device.
///
/// @tparam Order   RowMajor or ColumnMajor; may be left out for `layout_right` and `layout_left`
/// @param  span    a two-dimensional mdspan of device memory
/// @return a MatrixView of the same memory
/// @throws Error  `invalid_argument` if the stride that this order has between neighbours is not 1, or if rows (or
///                columns) overlap; `size_overflow`, `wrong_memory`, `misaligned`
template <class Order = void, class Span>
    requires detail::MatrixSpan<Span>
auto from_raw_device_mdspan(const Span& span, std::source_location caller = std::source_location::current())
{
    using Said = typename detail::OrderOfLayout<typename Span::layout_type>::type;
    using Chosen = std::conditional_t<std::is_void_v<Order>, Said, Order>;
    static_assert(Span::rank() == 2, "tessera: a matrix is an mdspan of two dimensions");
    static_assert(!std::is_void_v<Chosen>,
                  "tessera: the layout of this mdspan does not say the storage order: write "
                  "from_raw_device_mdspan<RowMajor>(span) or <ColumnMajor>");
    static_assert(std::is_void_v<Said> || std::is_same_v<Said, Chosen>,
                  "tessera: an mdspan of layout_right is RowMajor, and one of layout_left ColumnMajor");
    using Element = detail::ElementOf<typename Span::element_type>;
    using View = MatrixView<Element, Chosen>;
    const auto rows = static_cast<std::int64_t>(span.extent(0));
    const auto columns = static_cast<std::int64_t>(span.extent(1));
    const std::int64_t leading_dimension =
        detail::require_unit_stride(rows, columns, static_cast<std::int64_t>(span.stride(0)),
                                    static_cast<std::int64_t>(span.stride(1)), View::is_row_major, caller);
    return View::from_raw_device_pointer(span.data_handle(), rows, columns, leading_dimension, caller);
}

}  // namespace tessera

#undef TESSERA_DETAIL_HAS_CUDA_MDSPAN
