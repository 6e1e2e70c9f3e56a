#pragma once

/// Checks the operands of a product against each other, and brings them into the form that kernels take.

#include <source_location>
#include <string_view>

#include "kernels/common/gemm_arguments.hpp"
#include "tessera/gemm.hpp"

namespace tessera::detail {

/// Extents, batches, types, devices and overlaps. Costs a few dozen comparisons and allocates nothing
/// unless something is wrong.
/// @throws Error `shape_mismatch`, `invalid_argument`, `device_mismatch`, `aliasing`
void require_operands(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue,
                      std::string_view operation, const std::source_location& caller);

/// Makes a batch as large as D's of each operand that has one matrix for all, with a stride of 0.
void share_single_matrices(GemmOperands& operands, Epilogue& epilogue) noexcept;

/// The facts about checked operands, whose batches are as large as D's, that a variant is chosen by.
GemmProblem problem_of(const GemmOperands& operands, const Epilogue& epilogue) noexcept;

/// The kernel's parameter for checked operands, of one level of batches, of a D that is not empty; tile counts are left to the caller. A
/// column-major D is given to the kernel as the transposed product, whose D is row-major.
kernels::GemmArguments arguments_of(const GemmOperands& operands, const Epilogue& epilogue) noexcept;

/// Enqueues `choice`, which can run `problem`, for checked operands of a D that is not empty: gemm.cpp. Of one level of
/// batches.
void enqueue_gemm(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue, const GemmProblem& problem,
                  const DeviceProperties& device, const KernelChoice& choice, std::string_view operation,
                  const std::source_location& caller, const Workspace& workspace = {});

/// Checks that `bytes` of a caller's workspace share nothing with the operands. @throws Error `aliasing`
void require_workspace_apart(const Workspace& workspace, std::size_t bytes, const GemmOperands& operands,
                             const Epilogue& epilogue, std::string_view operation, const std::source_location& caller);

}  // namespace tessera::detail
