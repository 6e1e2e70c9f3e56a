#include "tessera/matrix_operand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

constexpr std::string_view operation = "MatrixOperand::from_raw_device_pointer";

[[noreturn]] void raise_uncountable(const OperandLayout& layout, const std::source_location& caller)
{
    detail::raise(ErrorCode::size_overflow, operation, caller,
                  fmt::format("{} groups of {} matrices of {}x{} span more bytes than 64 bits can count",
                              layout.outer_count, layout.count, layout.rows, layout.columns));
}

MatrixOperand make(const void* data, bool writable, ElementType type, const OperandLayout& layout,
                   const std::source_location& caller)
{
    MatrixOperand operand;
    operand.data = data;
    operand.type = type;
    operand.rows = layout.rows;
    operand.columns = layout.columns;
    operand.leading_dimension =
        layout.leading_dimension.value_or(std::max<std::int64_t>(layout.row_major ? layout.columns : layout.rows, 1));
    operand.row_major = layout.row_major;
    operand.batches = layout.count;
    operand.outer_batches = layout.outer_count;
    operand.present = true;
    operand.writable = writable;
    const std::int64_t one = detail::require_extents(
        operation, {layout.rows, layout.columns, operand.leading_dimension, layout.row_major}, size_of(type), caller);
    // From the last vector of a matrix to the first of the next is a whole step of the leading dimension.
    const std::int64_t vectors = layout.row_major ? layout.rows : layout.columns;
    std::int64_t no_gap = 0;
    if (one > 0 && __builtin_mul_overflow(vectors, operand.leading_dimension, &no_gap)) {
        raise_uncountable(layout, caller);
    }
    operand.batch_stride = layout.stride.value_or(layout.count > 1 ? no_gap : 0);
    std::int64_t group = no_gap;
    if (layout.count > 1 && __builtin_mul_overflow(layout.count, operand.batch_stride, &group)) {
        raise_uncountable(layout, caller);
    }
    operand.outer_stride = layout.outer_stride.value_or(layout.outer_count > 1 ? group : 0);
    if (layout.count < 0 || operand.batch_stride < 0 || layout.outer_count < 0 || operand.outer_stride < 0) {
        detail::raise(ErrorCode::invalid_argument, operation, caller,
                      fmt::format("a batch cannot have {} matrices at a stride of {}, in {} groups at a stride of {}",
                                  layout.count, operand.batch_stride, layout.outer_count, operand.outer_stride),
                      "0 or more of each");
    }
    if (one == 0 || layout.count == 0 || layout.outer_count == 0) {
        return operand;
    }
    // Bytes from the first element to one past the last.
    std::int64_t inner = 0;
    std::int64_t outer = 0;
    std::int64_t elements = 0;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(layout.count - 1, operand.batch_stride, &inner) ||
        __builtin_mul_overflow(layout.outer_count - 1, operand.outer_stride, &outer) ||
        __builtin_add_overflow(inner, outer, &elements) || __builtin_add_overflow(elements, one, &elements) ||
        __builtin_mul_overflow(elements, static_cast<std::int64_t>(size_of(type)), &bytes)) {
        raise_uncountable(layout, caller);
    }
    operand.device = detail::device_of_elements(data, size_of(type), operation, caller);
    return operand;
}

}  // namespace

MatrixOperand MatrixOperand::from_raw_device_pointer(void* data, ElementType type, const OperandLayout& layout,
                                                     std::source_location caller)
{
    return make(data, true, type, layout, caller);
}

MatrixOperand MatrixOperand::from_raw_device_pointer(const void* data, ElementType type, const OperandLayout& layout,
                                                     std::source_location caller)
{
    return make(data, false, type, layout, caller);
}

MatrixOperand MatrixOperand::transposed() const noexcept
{
    MatrixOperand result = *this;
    std::swap(result.rows, result.columns);
    result.row_major = !row_major;
    return result;
}

}  // namespace tessera
