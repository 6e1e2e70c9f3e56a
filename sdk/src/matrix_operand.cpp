#include "tessera/matrix_operand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace tessera {
namespace {

constexpr std::string_view operation = "MatrixOperand::from_raw_device_pointer";

/// Bytes from the first element to one past the last have to be countable.
void require_countable(const OperandShape& shape, std::int64_t one, ElementType type,
                       const std::source_location& caller)
{
    std::int64_t inner = 0;
    std::int64_t outer = 0;
    std::int64_t elements = 0;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(shape.batches - 1, shape.batch_stride, &inner) ||
        __builtin_mul_overflow(shape.outer_batches - 1, shape.outer_stride, &outer) ||
        __builtin_add_overflow(inner, outer, &elements) || __builtin_add_overflow(elements, one, &elements) ||
        __builtin_mul_overflow(elements, static_cast<std::int64_t>(size_of(type)), &bytes)) {
        detail::raise(
            ErrorCode::size_overflow, operation, caller,
            fmt::format("{} matrices at a stride of {}, in {} batches at a stride of {}, span more bytes than "
                        "64 bits can count",
                        shape.batches, shape.batch_stride, shape.outer_batches, shape.outer_stride));
    }
}

MatrixOperand make(const void* data, bool writable, ElementType type, const OperandShape& shape,
                   const std::source_location& caller)
{
    MatrixOperand operand;
    operand.data = data;
    operand.type = type;
    operand.rows = shape.rows;
    operand.columns = shape.columns;
    const std::int64_t vector_size = shape.row_major ? shape.columns : shape.rows;
    operand.leading_dimension =
        shape.leading_dimension == 0 ? std::max<std::int64_t>(vector_size, 1) : shape.leading_dimension;
    operand.row_major = shape.row_major;
    operand.batches = shape.batches;
    operand.batch_stride = shape.batch_stride;
    operand.outer_batches = shape.outer_batches;
    operand.outer_stride = shape.outer_stride;
    operand.present = true;
    operand.writable = writable;
    const std::int64_t one = detail::require_extents(
        operation, {shape.rows, shape.columns, operand.leading_dimension, shape.row_major}, size_of(type), caller);
    if (shape.batches < 0 || shape.batch_stride < 0 || shape.outer_batches < 0 || shape.outer_stride < 0) {
        detail::raise(ErrorCode::invalid_argument, operation, caller,
                      fmt::format("a batch cannot have {} matrices at a stride of {}, in {} batches at a stride of {}",
                                  shape.batches, shape.batch_stride, shape.outer_batches, shape.outer_stride),
                      "0 or more of each");
    }
    if (one == 0 || shape.batches == 0 || shape.outer_batches == 0) {
        return operand;
    }
    require_countable(shape, one, type, caller);
    operand.device = detail::device_of_elements(data, size_of(type), operation, caller);
    return operand;
}

}  // namespace

MatrixOperand MatrixOperand::from_raw_device_pointer(void* data, ElementType type, const OperandShape& shape,
                                                     std::source_location caller)
{
    return make(data, true, type, shape, caller);
}

MatrixOperand MatrixOperand::from_raw_device_pointer(const void* data, ElementType type, const OperandShape& shape,
                                                     std::source_location caller)
{
    return make(data, false, type, shape, caller);
}

MatrixOperand MatrixOperand::transposed() const noexcept
{
    MatrixOperand result = *this;
    std::swap(result.rows, result.columns);
    result.row_major = !row_major;
    return result;
}

}  // namespace tessera
