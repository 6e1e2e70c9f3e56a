#include "tessera/matrix_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "memory/memory_size.hpp"
#include "tessera/device_span.hpp"

namespace tessera::detail {
namespace {

/// Most callers that have no elements at all have moved from the buffer.
constexpr const char* moved_from_cure =
    "was its buffer moved from? Use the object that it was moved to, or a longer buffer";

std::string describe(const MatrixExtents& extents)
{
    return fmt::format("{}x{} {} matrix with leading dimension {}", extents.rows, extents.columns,
                       extents.row_major ? "row-major" : "column-major", extents.leading_dimension);
}

/// Returns left * right + addend of values that are not negative, or nothing if that exceeds `limit`.
bool multiply_add(std::int64_t left, std::int64_t right, std::int64_t addend, std::int64_t limit, std::int64_t& result)
{
    return !__builtin_mul_overflow(left, right, &result) && !__builtin_add_overflow(result, addend, &result) &&
           result <= limit;
}

}  // namespace

std::int64_t require_extents(std::string_view operation, const MatrixExtents& extents, std::size_t element_bytes,
                             const std::source_location& caller)
{
    if (extents.rows < 0 || extents.columns < 0) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("a matrix cannot have {} rows and {} columns", extents.rows, extents.columns),
              "extents of 0 or more");
    }
    if (extents.leading_dimension < extents.vector_size() || extents.leading_dimension < 1) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("leading dimension {} is too small for a {}x{} {} matrix", extents.leading_dimension,
                          extents.rows, extents.columns, extents.row_major ? "row-major" : "column-major"),
              fmt::format("a leading dimension of at least {} (the {}), in elements",
                          std::max<std::int64_t>(extents.vector_size(), 1), extents.row_major ? "columns" : "rows"));
    }
    if (extents.vector_count() == 0 || extents.vector_size() == 0) {
        return 0;
    }
    const std::int64_t limit = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(element_bytes);
    std::int64_t elements = 0;
    if (!multiply_add(extents.vector_count() - 1, extents.leading_dimension, extents.vector_size(), limit, elements)) {
        raise(ErrorCode::size_overflow, operation, caller,
              fmt::format("the size of the {} does not fit into 63 bits", describe(extents)));
    }
    return elements;
}

void require_matrix_fits(std::string_view operation, const MatrixExtents& extents, std::size_t element_bytes,
                         std::size_t size, const std::source_location& caller)
{
    const auto needed = static_cast<std::size_t>(require_extents(operation, extents, element_bytes, caller));
    if (needed > size) {
        raise(ErrorCode::out_of_range, operation, caller,
              fmt::format("a {} needs {} elements and the memory has {}", describe(extents), needed, size),
              size == 0 ? moved_from_cure : "a longer buffer, or a smaller matrix");
    }
}

BatchExtents require_batch_extents(std::string_view operation, const BatchLayout& layout, bool row_major,
                                   std::size_t element_bytes, const std::source_location& caller)
{
    const std::int64_t vector_size = row_major ? layout.columns : layout.rows;
    const std::int64_t packed = std::max<std::int64_t>(vector_size, 1);
    BatchExtents all{{layout.rows, layout.columns, layout.leading_dimension.value_or(packed), row_major},
                     layout.count,
                     0,
                     layout.outer_count,
                     0};
    const std::int64_t one = require_extents(operation, all.matrix, element_bytes, caller);
    const auto require_level = [&](const char* what, std::int64_t count, std::int64_t stride) {
        if (count < 0 || stride < 0) {
            raise(ErrorCode::invalid_argument, operation, caller,
                  fmt::format("a batch cannot have {} {} at a stride of {}", count, what, stride), "0 or more of each");
        }
    };
    const auto raise_overflow = [&](std::int64_t count, const char* what, std::int64_t stride) {
        raise(ErrorCode::size_overflow, operation, caller,
              fmt::format("the size of {} {} at a stride of {} does not fit into 63 bits", count, what, stride));
    };
    const std::int64_t limit = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(element_bytes);
    // What overflows is refused below as a stride that is too large.
    const auto product = [](std::int64_t left, std::int64_t right) {
        std::int64_t result = 0;
        return __builtin_mul_overflow(left, right, &result) ? std::numeric_limits<std::int64_t>::max() : result;
    };
    // The next matrix of a batch without gaps begins after a whole step of the leading dimension.
    const std::int64_t matrix = one == 0 ? 0 : product(all.matrix.vector_count(), all.matrix.leading_dimension);
    all.stride = layout.stride.value_or(matrix);
    require_level("matrices", all.count, all.stride);
    std::int64_t group = 0;  // elements from the first to one past the last of a group
    if (all.count > 0 && one > 0 && !multiply_add(all.count - 1, all.stride, one, limit, group)) {
        raise_overflow(all.count, "matrices", all.stride);
    }
    // Matrices of a group follow each other, or are interleaved in the steps of one matrix.
    all.outer_stride =
        layout.outer_stride.value_or(all.count == 0 ? 0 : std::max(product(all.count, all.stride), matrix));
    require_level("groups", all.outer_count, all.outer_stride);
    std::int64_t total = 0;
    if ((group > 0 && all.outer_count > 0 &&
         !multiply_add(all.outer_count - 1, all.outer_stride, group, limit, total)) ||
        __builtin_mul_overflow(all.count, all.outer_count, &total)) {
        raise_overflow(all.outer_count, fmt::format("groups of {} matrices", all.count).c_str(), all.outer_stride);
    }
    return all;
}

BatchExtents require_batch_fits(std::string_view operation, const BatchLayout& layout, bool row_major,
                                std::size_t element_bytes, std::size_t size, const std::source_location& caller)
{
    const BatchExtents all = require_batch_extents(operation, layout, row_major, element_bytes, caller);
    const std::int64_t one = require_extents(operation, all.matrix, element_bytes, caller);
    if (one == 0 || all.count == 0 || all.outer_count == 0) {
        return all;
    }
    const std::int64_t needed = (all.outer_count - 1) * all.outer_stride + (all.count - 1) * all.stride + one;
    if (static_cast<std::size_t>(needed) > size) {
        const std::string groups =
            all.outer_count == 1 ? std::string()
                                 : fmt::format("{} groups, {} elements apart, of ", all.outer_count, all.outer_stride);
        raise(ErrorCode::out_of_range, operation, caller,
              fmt::format("{}{} of a {} at a batch stride of {} need {} elements and the memory has {}", groups,
                          all.count, describe(all.matrix), all.stride, needed, size),
              size == 0 ? moved_from_cure : "a longer buffer, or fewer matrices");
    }
    return all;
}

/// Declared in mdspan.hpp, which is not included here because <mdspan> is slow to compile.
std::int64_t require_unit_stride(std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                                 std::int64_t column_stride, bool row_major, const std::source_location& caller)
{
    const std::int64_t vector_size = row_major ? columns : rows;
    const std::int64_t vector_count = row_major ? rows : columns;
    const std::int64_t inner = row_major ? column_stride : row_stride;
    const std::int64_t outer = row_major ? row_stride : column_stride;
    // The stride of a dimension with one element or none is never used.
    if (inner != 1 && vector_size > 1) {
        const bool is_other_order = outer == 1 || vector_count <= 1;
        raise(ErrorCode::invalid_argument, "from_raw_device_mdspan", caller,
              fmt::format(
                  "the {}x{} mdspan has strides of {} and {}: a {} matrix needs a stride of 1 between the elements of "
                  "a {}",
                  rows, columns, row_stride, column_stride, row_major ? "row-major" : "column-major",
                  row_major ? "row" : "column"),
              is_other_order ? fmt::format("from_raw_device_mdspan<{}>", row_major ? "ColumnMajor" : "RowMajor")
                             : "copy the elements: a view can have gaps in one direction only");
    }
    return vector_count > 1 ? outer : std::max<std::int64_t>(vector_size, 1);
}

void require_block(std::string_view operation, const MatrixExtents& extents, std::int64_t row, std::int64_t column,
                   std::int64_t rows, std::int64_t columns, const std::source_location& caller)
{
    if (!extents.has_block(row, column, rows, columns)) {
        raise(ErrorCode::out_of_range, operation, caller,
              fmt::format("a block of {}x{} at ({}, {}) does not fit into the {}x{} matrix", rows, columns, row, column,
                          extents.rows, extents.columns),
              extents.has_block(row, column, 0, 0)
                  ? fmt::format("at most {}x{} there", extents.rows - row, extents.columns - column)
                  : fmt::format("a first row of 0 to {} and a first column of 0 to {}", extents.rows, extents.columns));
    }
}

void raise_tile(std::string_view operation, const std::source_location& caller, std::int64_t tile_row,
                std::int64_t tile_column, std::int64_t tile_rows, std::int64_t tile_columns, std::int64_t rows,
                std::int64_t columns)
{
    if (tile_rows <= 0 || tile_columns <= 0) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("a tile cannot have {} rows and {} columns", tile_rows, tile_columns), "at least 1 of each");
    }
    raise(ErrorCode::out_of_range, operation, caller,
          fmt::format("tile ({}, {}) of {}x{} elements is outside of the {}x{} matrix", tile_row, tile_column,
                      tile_rows, tile_columns, rows, columns),
          rows > 0 && columns > 0 ? fmt::format("tile rows 0 to {} and tile columns 0 to {}", (rows - 1) / tile_rows,
                                                (columns - 1) / tile_columns)
                                  : "check first that the matrix has elements");
}

void raise_batch_index(std::int64_t index, std::int64_t count, const std::source_location& caller)
{
    raise(ErrorCode::out_of_range, "BatchView::at", caller,
          fmt::format("index {} is out of range for a batch of {}", index, count));
}

void raise_batch_index(std::int64_t outer, std::int64_t inner, std::int64_t outer_count, std::int64_t count,
                       const std::source_location& caller)
{
    raise(
        ErrorCode::out_of_range, "BatchView::at", caller,
        fmt::format("index ({}, {}) is out of range for a batch of {} groups of {}", outer, inner, outer_count, count));
}

void raise_range(std::string_view operation, const std::source_location& caller, std::size_t offset, std::size_t count,
                 std::size_t size)
{
    raise(ErrorCode::out_of_range, operation, caller,
          fmt::format("{} elements from element {} on do not fit into memory of {} elements", count, offset, size),
          negative_hint(offset).empty() ? negative_hint(count) : negative_hint(offset));
}

int device_of_pointer(const void* pointer, std::string_view operation, const std::source_location& caller)
{
    cudaPointerAttributes attributes{};
    check(cudaPointerGetAttributes(&attributes, pointer), "cudaPointerGetAttributes", operation, caller);
    switch (attributes.type) {
        case cudaMemoryTypeDevice:
        case cudaMemoryTypeManaged: return attributes.device;
        case cudaMemoryTypeHost:
            // Pinned memory is accepted if the device can address it, across the bus.
            if (attributes.devicePointer == pointer) {
                return attributes.device;
            }
            break;
        default: break;
    }
    raise(ErrorCode::wrong_memory, operation, caller,
          fmt::format("{} is {}, not device memory", fmt::ptr(pointer),
                      pointer == nullptr ? "null" : "ordinary host memory"),
          "copy the data to a DeviceBuffer first: DeviceBuffer<T>::from_host(stream, data)");
}

int device_of_elements(const void* pointer, std::size_t alignment, std::string_view operation,
                       const std::source_location& caller)
{
    if (std::bit_cast<std::uintptr_t>(pointer) % alignment != 0) {
        raise(ErrorCode::misaligned, operation, caller,
              fmt::format("{} is not {}-byte aligned, as its elements must be", fmt::ptr(pointer), alignment),
              "the address of an element, or a copy of the data at an aligned address");
    }
    return device_of_pointer(pointer, operation, caller);
}

}  // namespace tessera::detail
