#pragma once

/// Checks that what a launch writes shares no memory with what it reads or with itself.

#include <cstddef>
#include <source_location>
#include <string_view>

#include "gemm/gemm_operands.hpp"
#include "tessera/workspace.hpp"

namespace tessera::detail {

/// Checks D, the pre-activation and amax_d of operands whose extents and types are right. @throws Error `aliasing`
void require_no_alias(const GemmOperands& operands, const Epilogue& epilogue, std::string_view operation,
                      const std::source_location& caller);

/// Checks that `bytes` of a caller's workspace do not overlap the operands. @throws Error `aliasing`
void require_workspace_apart(const Workspace& workspace, std::size_t bytes, const GemmOperands& operands,
                             const Epilogue& epilogue, std::string_view operation, const std::source_location& caller);

}  // namespace tessera::detail
