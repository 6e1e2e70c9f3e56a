#pragma once

/// Repacking on Hopper: an operand that TMA cannot address, or whose order the tensor core does not read, is copied to
/// where both can, before a kernel that does not copy by itself. Which operands, how much memory that takes, and the
/// launch.

#include <array>
#include <cstddef>
#include <span>

#include "kernels/hopper/hopper_arguments.hpp"
#include "kernels/hopper/hopper_repack.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// The part of a device's memory, 1 / this, that the copies of a product may take. A stream keeps them for its next
/// launches, and what it keeps should not be what the operands of others then lack. On an H200, 8.8 GiB: two bf16
/// operands of 48000 x 48000.
inline constexpr std::size_t repacking_memory_share = 16;

/// Bytes of the copies of all operands that a kernel which does not copy needs repacked; 0 if it needs none, and the
/// largest number if the bytes cannot be counted. `problem` is resolved.
std::size_t repacked_bytes(const GemmProblem& problem) noexcept;

/// Whether the copies may be made.
bool may_repack(const GemmProblem& problem, const DeviceProperties& device) noexcept;

/// What a launch repacks first.
class OperandCopies {
public:
    /// Of those operands of `arguments` that TMA cannot load: they become what their copies at `memory` will be.
    OperandCopies(kernels::HopperArguments& arguments, std::size_t element_bytes, std::int64_t batches,
                  std::byte* memory);

    /// Enqueues the copying, if there is any.
    cudaError_t enqueue(cudaStream_t stream) const;

private:
    std::array<kernels::Repacking, 2> copies_{};
    std::size_t count_ = 0;
    std::size_t element_bytes_;
};

}  // namespace tessera::detail
