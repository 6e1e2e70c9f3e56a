#pragma once

/// The Hopper side of a launch: eligibility, candidates, tensor maps, grid.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/call_status.hpp"
#include "gemm/encoded_launch.hpp"
#include "gemm/variant_chooser.hpp"
#include "gemm/workspace_need.hpp"
#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/hopper/hopper_arguments.hpp"
#include "kernels/hopper/hopper_kernels.hpp"
#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"

namespace tessera::detail {

inline constexpr int hopper_compute_capability = 90;

/// The problem as the kernel sees it: transposed if D is column-major, and again if `swapped`.
struct HopperShape {
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    std::int64_t batches;
    bool a_k_major;
    bool b_k_major;
    bool a_by_threads;  // TMA cannot address it, or wgmma cannot read its major: copied by threads, or repacked first
    bool b_by_threads;

    friend bool operator==(const HopperShape&, const HopperShape&) = default;
};

HopperShape hopper_shape(const GemmProblem& problem, bool swapped);

/// What follows the sums of products, as the kernel sees it: transposed if D is column-major, and again if swapped.
struct HopperEpilogue {
    ElementType d;
    ElementType c;
    bool has_c;
    BiasAxis bias;
    Activation activation;
    Gating gating;
    bool has_scale_vectors;
    bool has_pre_activation;
};

/// Returns which of the kernel's epilogues computes it, if TMA can store D. @param carries_c  C comes through the ring
kernels::HopperFinishing finishing_of(const HopperEpilogue& epilogue, const kernels::HopperKernel& kernel,
                                      bool carries_c);

/// Returns nothing if the Hopper kernels give the right answer for `problem` on `device`. `problem` must be resolved.
std::optional<Refusal> find_hopper_refusal(const GemmProblem& problem, const DeviceProperties& device);

/// Returns true if `choice` can run `problem`, so that a tuner may try it.
bool is_hopper_choice_valid(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice);

/// Returns how many clusters of this size run at the same time.
std::int64_t hopper_cluster_slots(const DeviceProperties& device, const kernels::HopperKernel& kernel,
                                  int cluster_size);

/// Returns all choices worth trying for an eligible problem.
std::vector<KernelChoice> hopper_candidates(const GemmProblem& problem, const DeviceProperties& device);

WorkspaceNeed hopper_workspace(const GemmProblem& problem, const KernelChoice& choice);

/// Fills in `launch`: one kernel, or two if operands are repacked. The device must be current, the problem eligible, and
/// the workspace large enough, with its counters zero.
CallStatus encode_hopper(EncodedLaunch& launch, const GemmProblem& problem, const KernelChoice& choice,
                         const DeviceProperties& device, const kernels::GemmArguments& arguments,
                         const WorkspaceMemory& workspace);

/// Encodes and enqueues, for tests and benchmarks that choose the configuration and the workspace themselves.
CallStatus launch_hopper(StreamRef stream, const GemmProblem& problem, const KernelChoice& choice,
                         const kernels::GemmArguments& arguments, const WorkspaceMemory& workspace);

}  // namespace tessera::detail
