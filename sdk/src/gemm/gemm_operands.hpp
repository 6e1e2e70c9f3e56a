#pragma once

/// Checks the operands of a product against each other, and converts them to kernel parameters.

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

#include "kernels/gemm/gemm_arguments.hpp"
#include "tessera/device/tile_raster.hpp"
#include "tessera/gemm.hpp"

namespace tessera::detail {

/// The extents of one matrix as text: "6x4".
std::string shape(const MatrixOperand& operand);
/// The number of matrices as text: "6", or "2x3" for two levels.
std::string count(const MatrixOperand& operand);

/// Checks extents, batches and types: what needs no memory. Does the first half of `require_operands`.
/// @throws Error `shape_mismatch`, `invalid_argument`
void require_product(const GemmOperands& operands, const Epilogue& epilogue, std::string_view operation,
                     const std::source_location& caller);

/// Checks extents, batches, types, devices and overlaps. Costs a few dozen comparisons, and allocates only if something
/// is wrong.
/// @throws Error `shape_mismatch`, `invalid_argument`, `device_mismatch`, `aliasing`
void require_operands(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue,
                      std::string_view operation, const std::source_location& caller);

/// Extends each operand with a single matrix to D's batch, with a stride of 0.
void share_single_matrices(GemmOperands& operands, Epilogue& epilogue) noexcept;

/// Returns the facts by which a variant is chosen. The operands are checked, and their batches are as large as D's.
GemmProblem problem_of(const GemmOperands& operands, const Epilogue& epilogue) noexcept;

/// Returns the kernel parameters for checked operands with one level of batches and a D that is not empty; the caller
/// fills in the raster. For a column-major D, the kernel computes the transposed product, whose D is row-major.
kernels::GemmArguments arguments_of(const GemmOperands& operands, const Epilogue& epilogue) noexcept;

/// Returns the parameters of the transposed product, D^T = B^T * A^T. A's and B's own scales stay where they are.
kernels::GemmArguments transposed(kernels::GemmArguments arguments) noexcept;

/// Returns the axis of the bias in the transposed product.
BiasAxis transposed(BiasAxis axis) noexcept;

/// Returns the raster of D cut into tiles of (tile_m, tile_n) elements, in groups of `band` tile rows.
TileRaster raster_of(const kernels::GemmArguments& arguments, std::int64_t tile_m, std::int64_t tile_n,
                     std::uint32_t band) noexcept;

/// Enqueues `choice`, which can run `problem`, for checked operands with one level of batches and a D that is not
/// empty. Defined in gemm.cpp.
void enqueue_gemm(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue, const GemmProblem& problem,
                  const DeviceProperties& device, const KernelChoice& choice, std::string_view operation,
                  const std::source_location& caller);

}  // namespace tessera::detail
