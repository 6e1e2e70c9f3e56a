#pragma once

/// The Hopper side of a launch: eligibility, candidates, tensor maps, grid.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/call_status.hpp"
#include "gemm/encoded_launch.hpp"
#include "gemm/variant_chooser.hpp"
#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/hopper/hopper_arguments.hpp"
#include "kernels/hopper/hopper_kernels.hpp"
#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"

namespace tessera::detail {

/// TMA's alignment of addresses and strides, in bytes. An operand with less is loaded by the fallback load of a kernel
/// that has one, or repacked before a kernel that has none (hopper_repack.hpp).
inline constexpr std::size_t hopper_alignment = 16;

/// The problem as the kernel sees it: transposed if D is column-major, and again if `swapped`.
struct HopperShape {
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    std::int64_t batches;
    bool a_k_major;
    bool b_k_major;
    bool a_by_threads;  // fallback load: TMA cannot address it, or wgmma cannot read its major
    bool b_by_threads;

    friend bool operator==(const HopperShape&, const HopperShape&) = default;
};

HopperShape hopper_shape(const GemmProblem& problem, bool swapped);

/// Returns nothing if the Hopper kernels give the right answer for `problem` on `device`. `problem` must be resolved.
std::optional<Refusal> find_hopper_refusal(const GemmProblem& problem, const DeviceProperties& device);

/// Returns true if `choice` can run `problem`, so that a tuner may try it.
bool is_hopper_choice_valid(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice);

/// Returns how many clusters of this size run at the same time.
std::int64_t hopper_cluster_slots(const DeviceProperties& device, const kernels::HopperKernel& kernel,
                                  int cluster_size);

/// Returns all choices worth trying for an eligible problem.
std::vector<KernelChoice> hopper_candidates(const GemmProblem& problem, const DeviceProperties& device);

/// Device memory that a launch needs besides its operands.
struct HopperWorkspaceNeed {
    std::size_t partial_bytes = 0;
    std::size_t counters = 0;
    std::size_t copy_bytes = 0;  // of operands that are repacked
};
HopperWorkspaceNeed hopper_workspace(const GemmProblem& problem, const KernelChoice& choice);

/// The memory that meets a HopperWorkspaceNeed.
struct HopperMemory {
    float* partials = nullptr;
    std::uint32_t* arrivals = nullptr;  // all zero before and after a launch
    std::byte* copies = nullptr;        // 128-byte aligned
};

inline bool same_memory(const HopperMemory& one, const HopperMemory& other) noexcept
{
    return one.partials == other.partials && one.arrivals == other.arrivals && one.copies == other.copies;
}

/// Fills in `launch`: one kernel, or two if operands are repacked. The device must be current, the problem eligible, and
/// the workspace large enough, with its counters zero.
CallStatus encode_hopper(EncodedLaunch& launch, const GemmProblem& problem, const KernelChoice& choice,
                         const kernels::GemmArguments& arguments, const HopperMemory& workspace);

/// Encodes and enqueues, for tests and benchmarks that choose the configuration and the workspace themselves.
CallStatus launch_hopper(StreamRef stream, const GemmProblem& problem, const KernelChoice& choice,
                         const kernels::GemmArguments& arguments, const HopperMemory& workspace);

}  // namespace tessera::detail
