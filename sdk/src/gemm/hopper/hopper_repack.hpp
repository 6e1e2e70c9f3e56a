#pragma once

/// Repacking on Hopper: before a kernel without the fallback load, copies an operand that TMA cannot address or whose
/// major the tensor core cannot read. Decides which operands, and computes the memory needed.

#include <cstddef>
#include <cstdint>

#include "gemm/encoded_launch.hpp"
#include "kernels/hopper/hopper_arguments.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// The copies of a product may use 1 / this of a device's memory. A stream keeps them for its next launches, and that
/// should not starve other operands. On an H200 the limit is 8.8 GiB: two bf16 operands of 48000 x 48000.
inline constexpr std::size_t repacking_memory_share = 16;

/// Returns the bytes of all copies that a kernel without the fallback load needs: 0 if none, and the largest number if
/// they cannot be counted. `problem` must be resolved.
std::size_t repacked_bytes(const GemmProblem& problem) noexcept;

/// Returns true if the copies may be made.
bool may_repack(const GemmProblem& problem, const DeviceProperties& device) noexcept;

/// Adds the copies of the operands that TMA cannot load to `launch`, and replaces these operands in `arguments` by their
/// future copies at `memory`.
void repack_operands(EncodedLaunch& launch, kernels::HopperArguments& arguments, std::size_t element_bytes,
                     std::int64_t batches, std::byte* memory);

}  // namespace tessera::detail
