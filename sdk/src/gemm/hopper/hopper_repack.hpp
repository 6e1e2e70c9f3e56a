#pragma once

/// Repacking on Hopper: before a kernel without the fallback load, copies an operand that TMA cannot address or whose
/// major the tensor core cannot read. Decides which operands, computes the memory needed, and launches the copy.

#include <array>
#include <cstddef>
#include <span>

#include "kernels/hopper/hopper_arguments.hpp"
#include "kernels/hopper/hopper_repack.hpp"
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

/// The copies that a launch makes first.
class OperandCopies {
public:
    /// Takes the operands of `arguments` that TMA cannot load, and replaces them by their future copies at `memory`.
    OperandCopies(kernels::HopperArguments& arguments, std::size_t element_bytes, std::int64_t batches,
                  std::byte* memory);

    /// Enqueues the copies, if any.
    cudaError_t enqueue(cudaStream_t stream) const;

private:
    std::array<kernels::Repacking, 2> copies_{};
    std::size_t count_ = 0;
    std::size_t element_bytes_;
};

}  // namespace tessera::detail
