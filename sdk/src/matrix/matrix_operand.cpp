#include "tessera/matrix_operand.hpp"

#include <utility>

namespace tessera {
namespace {

constexpr std::string_view operation = "MatrixOperand::from_raw_device_pointer";

MatrixOperand make(const void* data, bool writable, ElementType type, const OperandLayout& layout,
                   const std::source_location& caller)
{
    const detail::BatchExtents all =
        detail::require_batch_extents(operation,
                                      {layout.rows, layout.columns, layout.leading_dimension, layout.count,
                                       layout.stride, layout.outer_count, layout.outer_stride},
                                      layout.row_major, size_of(type), caller);
    MatrixOperand operand;
    operand.data = data;
    operand.type = type;
    operand.rows = layout.rows;
    operand.columns = layout.columns;
    operand.leading_dimension = all.matrix.leading_dimension;
    operand.row_major = layout.row_major;
    operand.batches = all.count;
    operand.batch_stride = all.count > 1 ? all.stride : layout.stride.value_or(0);
    operand.outer_batches = all.outer_count;
    operand.outer_stride = all.outer_count > 1 ? all.outer_stride : layout.outer_stride.value_or(0);
    operand.present = true;
    operand.writable = writable;
    if (layout.rows == 0 || layout.columns == 0 || all.count == 0 || all.outer_count == 0) {
        return operand;
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
