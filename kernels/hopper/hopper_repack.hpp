#pragma once

/// Copies an operand that TMA cannot address, or whose order the tensor core does not read, to where the kernels that
/// load by TMA take it. One launch for both operands of a product, and for all matrices of a batch.
///
/// Words: a *line* is a run of elements that are contiguous in memory, along K or along M or N.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::kernels {

/// What a line of a copy begins at a multiple of, in bytes: rows that began inside a sector would make TMA slower, and
/// a stage's row is as long.
inline constexpr std::int64_t repacked_line_alignment = 128;

/// A batch of matrices and where their copies go. Strides are in bytes.
struct Repacking {
    const std::byte* source;  // at any alignment that its elements have
    std::byte* copy;          // at a multiple of `repacked_line_alignment`, as are the strides
    std::int64_t source_stride;
    std::int64_t source_batch_stride;
    std::int64_t copy_stride;  // what is between lines is not kept
    std::int64_t copy_batch_stride;
    std::int64_t lines;  // of the source; at least 1 and below 2^31, as are the next two
    std::int64_t run;    // elements of a line
    std::int64_t batches;
    bool transposes;  // element i of line j goes to element j of line i. Not for elements of 2 bytes
};

/// Enqueues the copying of one or two operands whose elements have `element_bytes` (1, 2 or 4). The kernel may start
/// beside the one before it, which it waits for before it reads or writes, and lets the one behind it start early.
cudaError_t repack(std::span<const Repacking> operands, std::size_t element_bytes, cudaStream_t stream);

}  // namespace tessera::kernels
