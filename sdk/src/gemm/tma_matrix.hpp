#pragma once

/// The matrices of a product as TMA sees them: which it can address, and their tensor maps. For every backend whose
/// kernels use TMA.

#include <cstddef>
#include <cstdint>

#include "base/call_status.hpp"
#include "kernels/gemm/gemm_arguments.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"
#include "tessera/tensor_map.hpp"

namespace tessera::detail {

/// TMA's alignment of addresses and strides, in bytes.
inline constexpr std::int64_t tma_alignment = 16;
/// TMA's limit of strides, in bytes, exclusive.
inline constexpr std::int64_t tma_stride_limit = std::int64_t{1} << 40U;
/// Coordinates are 32-bit, and tiles extend beyond the edge.
inline constexpr std::int64_t tma_extent_limit = 0x7FFFFFFF - 512;

/// `batches` of `lines` runs of `run` contiguous elements. Strides are in elements.
struct TmaMatrix {
    const void* data;
    std::int64_t element_bytes;
    std::int64_t run;
    std::int64_t lines;
    std::int64_t stride;  // from one line to the next
    std::int64_t batches;
    std::int64_t batch_stride;
    bool contiguous;  // the elements of a line are neighbours

    /// Returns true if the batch has more than one matrix in memory.
    bool batched() const noexcept { return batches > 1 && batch_stride != 0; }
    /// Returns true if TMA can load the matrix.
    bool is_addressable() const noexcept;
    /// Returns true if each line is a multiple of 16 bytes. Otherwise TMA would write beyond its end.
    bool has_whole_chunks() const noexcept { return run * element_bytes % tma_alignment == 0; }
};

/// What one load or store moves: a box of `lines` runs of `run` elements, of each of `matrices` of the batch.
struct TmaBox {
    std::uint32_t run;
    std::uint32_t lines;
    std::uint32_t matrices = 1;
    Swizzle swizzle = Swizzle::b128;
};

/// A with lines along K (`k_major`) or along M.
TmaMatrix tma_a(const kernels::GemmArguments& arguments, bool k_major, std::int64_t batches) noexcept;
/// B with lines along K (`k_major`) or along N.
TmaMatrix tma_b(const kernels::GemmArguments& arguments, bool k_major, std::int64_t batches) noexcept;
/// B with lines along K, for gated pairs: the matrix of the gates' columns, then that of the ups'.
TmaMatrix tma_pairs_of_b(const kernels::GemmArguments& arguments) noexcept;
/// C, D and the pre-activation, with lines along N.
TmaMatrix tma_c(const kernels::GemmArguments& arguments, std::int64_t batches) noexcept;
TmaMatrix tma_d(const kernels::GemmArguments& arguments, std::int64_t batches) noexcept;
TmaMatrix tma_pre_activation(const kernels::GemmArguments& arguments, std::int64_t batches) noexcept;

/// Returns true if TMA can load an operand of a problem, whose addresses are not known yet.
/// @param lines  rows of a row-major operand, columns of a column-major one
bool tma_can_load(const MatrixLayout& layout, std::size_t element_bytes, std::int64_t lines,
                  std::int64_t batches) noexcept;

/// Returns the largest power of two, at most 16, that the addresses of all lines of an operand are multiples of, in bytes.
/// @param lines  as for tma_can_load
std::int64_t line_alignment(const MatrixLayout& layout, std::size_t element_bytes, std::int64_t lines) noexcept;

/// Encodes the map of an addressable matrix: dimensions (run, line, batch), zeros outside of the matrix.
CallStatus encode_map(const DeviceProperties& device, const TmaMatrix& matrix, const TmaBox& box, AnyTensorMap<3>& map);

}  // namespace tessera::detail
