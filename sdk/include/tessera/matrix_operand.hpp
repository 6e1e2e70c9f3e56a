#pragma once

/// @file
/// @ingroup host_views
/// @brief `MatrixOperand`: a matrix or a batch whose element type and storage order are known only at run time.

#include <concepts>
#include <cstdint>
#include <optional>
#include <source_location>
#include <type_traits>

#include "tessera/detail/operand_kind.hpp"
#include "tessera/element.hpp"
#include "tessera/matrix_view.hpp"

namespace tessera {

/// How the matrices of a `MatrixOperand` are stored: a `BatchLayout` with a storage order. All numbers are in elements;
/// what is left out means that there are no gaps.
struct OperandLayout {
    std::int64_t rows = 0;                            ///< rows of each matrix
    std::int64_t columns = 0;                         ///< columns of each matrix
    std::optional<std::int64_t> leading_dimension{};  ///< leading dimension of each matrix
    bool row_major = true;                            ///< true for row-major, false for column-major
    std::int64_t count = 1;                           ///< number of matrices in a group
    std::optional<std::int64_t> stride{};             ///< between matrices of a group; 0 uses one matrix for all
    std::int64_t outer_count = 1;                     ///< number of groups: the outer level of [batch, head] layouts
    std::optional<std::int64_t> outer_stride{};       ///< between groups; 0 uses one group for all
};

/// A MatrixView or BatchView without its types, or memory whose types are known only at run time. A launch takes it for
/// A, B, C and D. Does not own the memory and must not outlive it.
///
/// @code{.cpp}
/// const OperandLayout layout{.rows = m, .columns = k, .row_major = false};
/// const auto a = MatrixOperand::from_raw_device_pointer(pointer, ElementType::bf16, layout);
/// Gemm::launch(stream, a, b16, d16);
/// @endcode
///
/// A type of yours that has an `operator MatrixOperand() const` can be passed to a launch, too.
///
/// @par Thread safety
/// A value: threads may use copies of it, or read the same object.
struct MatrixOperand {
    const void* data = nullptr;           ///< device address of the first element
    ElementType type = ElementType::f32;  ///< type of each element
    std::int64_t rows = 0;                ///< rows of each matrix
    std::int64_t columns = 0;             ///< columns of each matrix
    std::int64_t leading_dimension = 1;   ///< in elements
    std::int64_t batches = 1;             ///< number of matrices in a batch
    std::int64_t batch_stride = 0;        ///< in elements; 0 uses one matrix for all
    std::int64_t outer_batches = 1;       ///< number of batches of `batches` matrices each
    std::int64_t outer_stride = 0;        ///< in elements; 0 uses one batch for all
    bool row_major = true;                ///< true for row-major, false for column-major
    bool present = false;                 ///< false if there is no operand
    bool writable = false;                ///< true if it may be D: it was not made from const elements
    int device = -1;                      ///< ordinal of the memory's device, -1 for none

    /// No operand.
    MatrixOperand() = default;

    /// Refers to one matrix.
    template <class T, class Order>
    MatrixOperand(MatrixView<T, Order> view) noexcept
        : data(view.data()),
          type(element_traits<std::remove_const_t<T>>::type),
          rows(view.rows()),
          columns(view.columns()),
          leading_dimension(view.leading_dimension()),
          row_major(MatrixView<T, Order>::is_row_major),
          present(true),
          writable(!std::is_const_v<T>),
          device(view.device())
    {}

    /// Refers to a batch of one level or two.
    template <class T, class Order>
    MatrixOperand(BatchView<T, Order> view) noexcept : MatrixOperand(view.first())
    {
        batches = view.count();
        batch_stride = view.stride();
        outer_batches = view.outer_count();
        outer_stride = view.outer_stride();
    }

    /// Refuses to compile for any other type, with a message that says what to pass.
    template <class Other>
        requires(!detail::Operand<Other>)
    MatrixOperand(const Other& /*other*/) noexcept
    {
        detail::refuse_as_operand<Other>();
    }

    /// Views memory that the SDK did not allocate and that may be written. The caller answers for its length and type;
    /// the SDK asks CUDA for its device.
    ///
    /// @param data    address of the first element in device memory
    /// @param type    type of each element
    /// @param layout  extents, order, counts and strides
    /// @throws Error  `invalid_argument` for impossible extents or strides, `size_overflow`, `wrong_memory` for memory
    ///                that kernels cannot reach, `misaligned`
    static MatrixOperand from_raw_device_pointer(void* data, ElementType type, const OperandLayout& layout,
                                                 std::source_location caller = std::source_location::current());
    /// Does the same for memory that is only read: it cannot be D.
    static MatrixOperand from_raw_device_pointer(const void* data, ElementType type, const OperandLayout& layout,
                                                 std::source_location caller = std::source_location::current());

    /// Returns the same memory with rows and columns of each matrix exchanged. Nothing is copied.
    MatrixOperand transposed() const noexcept;
};

namespace detail {

/// Returns a view, or what converts to one, as a MatrixOperand.
template <Operand T>
MatrixOperand operand_of(const T& operand)
{
    if constexpr (ConvertsToOperand<T>) {
        return operand.operator MatrixOperand();
    } else {
        return MatrixOperand(operand);
    }
}

}  // namespace detail
}  // namespace tessera
