#pragma once

/// Repacking: copies an operand that TMA cannot address, or whose major wgmma cannot read, into an aligned matrix that
/// TMA can load. One launch serves both operands of a product and all matrices of a batch.
///
/// Terminology: a *line* is a run of elements that are contiguous in memory, along K or along M or N.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::kernels {

/// Alignment of a line in the copy, in bytes. TMA is slower if rows begin inside a sector; a row of a stage has this
/// length, too.
inline constexpr std::int64_t repacked_line_alignment = 128;

/// A batch of matrices and the place of their copies. Strides are in bytes.
struct Repacking {
    const std::byte* source;  // needs only the alignment of its elements
    std::byte* copy;          // aligned to `repacked_line_alignment`, like its strides
    std::int64_t source_stride;
    std::int64_t source_batch_stride;
    std::int64_t copy_stride;  // bytes between the lines are undefined
    std::int64_t copy_batch_stride;
    std::int64_t lines;  // of the source; lines, run and batches are at least 1 and below 2^31
    std::int64_t run;    // elements per line
    std::int64_t batches;
    bool transposes;  // element i of line j becomes element j of line i; not for elements of 2 bytes
};

/// Enqueues the copies of one or two operands with elements of `element_bytes` (1, 2 or 4). The kernel uses
/// programmatic dependent launch on both sides: it may start early, but waits for the previous kernel before it reads
/// or writes.
cudaError_t repack(std::span<const Repacking> operands, std::size_t element_bytes, cudaStream_t stream);

}  // namespace tessera::kernels
