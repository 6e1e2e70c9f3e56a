#include "tessera/matrix_copy.hpp"

#include <fmt/format.h>

namespace tessera::detail {
namespace {

/// The rows (or columns) of one end of a copy.
struct Vectors {
    const void* data;
    std::size_t pitch;  // bytes
};

void copy_matrix(std::string_view operation, StreamRef stream, const MatrixExtents& extents, std::size_t element_bytes,
                 const Vectors& target, const Vectors& source, int device, std::size_t host_size,
                 const std::source_location& caller)
{
    const auto vector_size = static_cast<std::size_t>(extents.vector_size());
    const auto vector_count = static_cast<std::size_t>(extents.vector_count());
    if (host_size != vector_size * vector_count) {
        raise(ErrorCode::shape_mismatch, operation, caller,
              fmt::format("the matrix is {}x{}, which is {} elements, and the host span has {}", extents.rows,
                          extents.columns, vector_size * vector_count, host_size),
              "a span of rows * columns elements, without gaps");
    }
    if (stream.is_capturing()) {
        raise(ErrorCode::capture_violation, operation, caller,
              "the stream is being captured into a graph, and a blocking copy cannot be captured",
              "do it before the capture begins");
    }
    if (host_size == 0) {
        return;
    }
    require_same_device(operation, caller, "the stream", stream.device(), "the matrix", device);
    const CurrentDevice current(stream.device(), operation, caller);
    check(cudaMemcpy2DAsync(const_cast<void*>(target.data), target.pitch, source.data, source.pitch,
                            vector_size * element_bytes, vector_count, cudaMemcpyDefault, stream.get()),
          "cudaMemcpy2DAsync", operation, caller);
    synchronize_stream(stream, operation, caller);
}

std::size_t device_pitch(const MatrixExtents& extents, std::size_t element_bytes)
{
    return static_cast<std::size_t>(extents.leading_dimension) * element_bytes;
}

std::size_t host_pitch(const MatrixExtents& extents, std::size_t element_bytes)
{
    return static_cast<std::size_t>(extents.vector_size()) * element_bytes;
}

}  // namespace

void copy_matrix_to_device(StreamRef stream, const MatrixExtents& extents, std::size_t element_bytes, void* target,
                           int device, const void* host, std::size_t host_size, const std::source_location& caller)
{
    copy_matrix("copy_from_host", stream, extents, element_bytes, {target, device_pitch(extents, element_bytes)},
                {host, host_pitch(extents, element_bytes)}, device, host_size, caller);
}

void copy_matrix_to_host(std::string_view operation, StreamRef stream, const MatrixExtents& extents,
                         std::size_t element_bytes, const void* source, int device, void* host, std::size_t host_size,
                         const std::source_location& caller)
{
    copy_matrix(operation, stream, extents, element_bytes, {host, host_pitch(extents, element_bytes)},
                {source, device_pitch(extents, element_bytes)}, device, host_size, caller);
}

}  // namespace tessera::detail
