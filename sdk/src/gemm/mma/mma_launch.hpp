#pragma once

/// Launches of the mma.sync kernel: which of its configurations can run a problem, which is expected to be the fastest,
/// and its arguments.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/call_status.hpp"
#include "gemm/encoded_launch.hpp"
#include "gemm/variant_chooser.hpp"
#include "gemm/workspace_need.hpp"
#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/mma/mma_kernels.hpp"

namespace tessera::detail {

/// What the kernels need of the operands' addresses and strides to load them as fast as they can, in bytes.
inline constexpr std::size_t mma_alignment = 16;

/// Returns true if this build has code for inputs of these types that runs on the device.
bool has_mma_code(InputTypes input, const DeviceProperties& device) noexcept;

std::optional<Refusal> find_mma_refusal(const GemmProblem& problem, const DeviceProperties& device);

/// Returns true if a choice can run an eligible problem.
bool is_mma_choice_valid(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice);

/// Calls `visit` with every choice for an eligible problem that is worth a thought.
void for_each_mma_candidate(const GemmProblem& problem, const DeviceProperties& device,
                            const std::function<void(const KernelChoice&)>& visit);

/// Returns the choice that the model expects to be the fastest for an eligible problem, of those that need a workspace of
/// at most `workspace_limit` bytes.
KernelChoice choose_mma(const GemmProblem& problem, const DeviceProperties& device, std::size_t workspace_limit);

/// Adds the choices that the model expects to be nearly as fast as its best, for a tuner.
void add_mma_candidates(const GemmProblem& problem, const DeviceProperties& device, std::vector<KernelChoice>& to);

/// Describes a choice: "Mma128x128, 64 tiles, each split in 2 along K".
std::string describe_mma(const GemmProblem& problem, const KernelChoice& choice);

WorkspaceNeed mma_workspace(const GemmProblem& problem, const KernelChoice& choice);

/// Fills in `launch`. The problem is eligible, and the workspace large enough, with its counters zero.
CallStatus encode_mma(EncodedLaunch& launch, const GemmProblem& problem, const DeviceProperties& device,
                      const KernelChoice& choice, const kernels::GemmArguments& arguments,
                      const WorkspaceMemory& workspace);

}  // namespace tessera::detail
