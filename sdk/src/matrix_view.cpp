#include "tessera/matrix_view.hpp"

#include <fmt/format.h>

#include <bit>
#include <limits>

#include "tessera/device_span.hpp"

namespace tessera::detail {
namespace {

std::string describe(const MatrixExtents& extents)
{
    return fmt::format("{}x{} {} matrix with leading dimension {}", extents.rows, extents.columns,
                       extents.row_major ? "row-major" : "column-major", extents.leading_dimension);
}

/// left * right + addend for values that are not negative, or nothing if that passes `limit`.
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
              fmt::format("the {} spans more bytes than 64 bits can count", describe(extents)));
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
              "a longer buffer, or a smaller matrix");
    }
}

void require_batch_fits(std::string_view operation, const MatrixExtents& extents, std::int64_t count,
                        std::int64_t stride, bool is_output, std::size_t element_bytes, std::size_t size,
                        const std::source_location& caller)
{
    const std::int64_t one = require_extents(operation, extents, element_bytes, caller);
    if (count < 0 || stride < 0) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("a batch cannot have {} matrices at a stride of {}", count, stride), "0 or more of each");
    }
    if (is_output && count > 1 && stride < one) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("matrices of {} elements at a batch stride of {} overlap and cannot be written", one, stride),
              fmt::format("a batch stride of at least {}, or a batch of const elements", one));
    }
    if (count == 0 || one == 0) {
        return;
    }
    const std::int64_t limit = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(element_bytes);
    std::int64_t needed = 0;
    if (!multiply_add(count - 1, stride, one, limit, needed)) {
        raise(ErrorCode::size_overflow, operation, caller,
              fmt::format("{} matrices at a stride of {} span more bytes than 64 bits can count", count, stride));
    }
    if (static_cast<std::size_t>(needed) > size) {
        raise(ErrorCode::out_of_range, operation, caller,
              fmt::format("{} of a {} at a batch stride of {} need {} elements and the memory has {}", count,
                          describe(extents), stride, needed, size),
              "a longer buffer, or fewer matrices");
    }
}

void require_block(std::string_view operation, const MatrixExtents& extents, std::int64_t row, std::int64_t column,
                   std::int64_t rows, std::int64_t columns, const std::source_location& caller)
{
    const bool inside = row >= 0 && column >= 0 && rows >= 0 && columns >= 0 && row <= extents.rows &&
                        column <= extents.columns && rows <= extents.rows - row && columns <= extents.columns - column;
    if (!inside) {
        raise(ErrorCode::out_of_range, operation, caller,
              fmt::format("a block of {}x{} at ({}, {}) leaves the {}x{} matrix", rows, columns, row, column,
                          extents.rows, extents.columns));
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
          fmt::format("tile ({}, {}) of {}x{} lies outside of the {}x{} matrix", tile_row, tile_column, tile_rows,
                      tile_columns, rows, columns),
          rows > 0 && columns > 0 ? fmt::format("tile rows 0 to {} and tile columns 0 to {}", (rows - 1) / tile_rows,
                                                (columns - 1) / tile_columns)
                                  : "the matrix has no elements");
}

void raise_batch_index(std::int64_t index, std::int64_t count, const std::source_location& caller)
{
    raise(ErrorCode::out_of_range, "BatchView::at", caller, fmt::format("matrix {} of a batch of {}", index, count));
}

void raise_range(std::string_view operation, const std::source_location& caller, std::size_t offset, std::size_t count,
                 std::size_t size)
{
    raise(ErrorCode::out_of_range, operation, caller,
          fmt::format("{} elements from element {} on leave memory of {} elements", count, offset, size));
}

int device_of_pointer(const void* pointer, std::string_view operation, const std::source_location& caller)
{
    cudaPointerAttributes attributes{};
    check(cudaPointerGetAttributes(&attributes, pointer), "cudaPointerGetAttributes", operation, caller);
    switch (attributes.type) {
        case cudaMemoryTypeDevice:
        case cudaMemoryTypeManaged: return attributes.device;
        case cudaMemoryTypeHost:
            // Pinned memory works where the device can address it, though across the bus.
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
              fmt::format("{} is not a multiple of {} bytes, as the address of such an element is", fmt::ptr(pointer),
                          alignment),
              "the address of an element, not of a byte inside of one");
    }
    return device_of_pointer(pointer, operation, caller);
}

}  // namespace tessera::detail
