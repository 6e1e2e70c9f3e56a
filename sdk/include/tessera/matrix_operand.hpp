#pragma once

/// `MatrixOperand`: a matrix, or a batch of them, whose element type and storage order are known at run time only.

#include <concepts>
#include <cstdint>
#include <optional>
#include <source_location>
#include <type_traits>

#include "tessera/detail/operand_kind.hpp"
#include "tessera/element.hpp"
#include "tessera/matrix_view.hpp"

namespace tessera {

/// How the matrices of a `MatrixOperand` lie in memory, as `BatchLayout` and a storage order say it. All in elements;
/// what is left out means that there are no gaps.
struct OperandLayout {
    std::int64_t rows = 0;                            ///< of each matrix
    std::int64_t columns = 0;                         ///< of each matrix
    std::optional<std::int64_t> leading_dimension{};  ///< of each matrix
    bool row_major = true;                            ///< the storage order
    std::int64_t count = 1;                           ///< matrices of a group
    std::optional<std::int64_t> stride{};             ///< between matrices of a group; 0: one is used for all
    std::int64_t outer_count = 1;                     ///< groups: the outer level of [batch, head] layouts
    std::optional<std::int64_t> outer_stride{};       ///< between groups; 0: one is used for all
};

/// Any MatrixView or BatchView with its type and order forgotten, or memory that never had them. A launch takes it for
/// A, B, C and D. Non-owning.
///
/// Thread safety: a value; several threads may use copies, or read the same one.
struct MatrixOperand {
    const void* data = nullptr;           ///< device address of the first element
    ElementType type = ElementType::f32;  ///< of each element
    std::int64_t rows = 0;                ///< extent, in elements
    std::int64_t columns = 0;             ///< extent, in elements
    std::int64_t leading_dimension = 1;   ///< in elements
    std::int64_t batches = 1;             ///< how many matrices
    std::int64_t batch_stride = 0;        ///< in elements; 0 is one matrix used for all
    std::int64_t outer_batches = 1;       ///< how many batches of `batches` matrices each
    std::int64_t outer_stride = 0;        ///< in elements; 0 is one batch used for all
    bool row_major = true;                ///< the storage order
    bool present = false;                 ///< false: there is no operand
    bool writable = false;                ///< whether it may be D: it was not made from const elements
    int device = -1;                      ///< the ordinal of the memory's device, -1 for none

    /// None.
    MatrixOperand() = default;

    /// One matrix.
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

    /// A batch, of one level or two.
    template <class T, class Order>
    MatrixOperand(BatchView<T, Order> view) noexcept : MatrixOperand(view.first())
    {
        batches = view.count();
        batch_stride = view.stride();
        outer_batches = view.outer_count();
        outer_stride = view.outer_stride();
    }

    /// Anything else: does not compile, and says what to pass.
    template <class Other>
        requires(!detail::Operand<Other>)
    MatrixOperand(const Other& /*other*/) noexcept
    {
        detail::refuse_as_operand<Other>();
    }

    /// Views memory that the SDK did not allocate, and that may be written. The caller vouches for the length and the
    /// type; that the memory is a device's is asked of CUDA.
    /// @throws Error `invalid_argument`, `size_overflow`, `wrong_memory`, `misaligned`
    static MatrixOperand from_raw_device_pointer(void* data, ElementType type, const OperandLayout& layout,
                                                 std::source_location caller = std::source_location::current());
    /// The same for memory that is only read.
    static MatrixOperand from_raw_device_pointer(const void* data, ElementType type, const OperandLayout& layout,
                                                 std::source_location caller = std::source_location::current());

    /// The same memory with the rows and columns of every matrix exchanged. Nothing moves.
    MatrixOperand transposed() const noexcept;
};

namespace detail {

/// A view or what converts to one, as the run-time typed operand.
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
