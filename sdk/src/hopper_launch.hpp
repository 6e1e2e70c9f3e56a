#pragma once

/// The Hopper kernels' side of a launch: eligibility, candidates, tensor maps, grid.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "call_status.hpp"
#include "kernels/common/gemm_arguments.hpp"
#include "kernels/hopper/hopper_arguments.hpp"
#include "kernels/hopper/hopper_kernels.hpp"
#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/stream.hpp"
#include "variant_chooser.hpp"

namespace tessera::detail {

/// What addresses and strides must be multiples of for TMA, in bytes. An operand that is not aligned so is copied by
/// threads: by those of a kernel that copies, or before one that does not (hopper_repack.hpp).
inline constexpr std::size_t hopper_alignment = 16;

/// The problem as the kernel sees it: after the transposition of a column-major D, and after that of `swapped`.
struct HopperShape {
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    std::int64_t batches;
    bool a_k_major;
    bool b_k_major;
    bool a_by_threads;  // TMA cannot address it, or wgmma does not read it in its order
    bool b_by_threads;

    friend bool operator==(const HopperShape&, const HopperShape&) = default;
};

HopperShape hopper_shape(const GemmProblem& problem, bool swapped);

/// Nothing if the Hopper kernels give the right answer for `problem` on `device`. `problem` is resolved.
std::optional<Refusal> find_hopper_refusal(const GemmProblem& problem, const DeviceProperties& device);

/// Whether `choice` can run `problem`: what a tuner may try.
bool is_hopper_choice_valid(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice);

/// Clusters of so many CTAs that run at the same time.
std::int64_t hopper_cluster_slots(const DeviceProperties& device, const kernels::HopperKernel& kernel,
                                  int cluster_size);

/// All choices that are worth a try for an eligible problem.
std::vector<KernelChoice> hopper_candidates(const GemmProblem& problem, const DeviceProperties& device);

/// What a launch needs besides its operands.
struct HopperWorkspaceNeed {
    std::size_t partial_bytes = 0;
    std::size_t counters = 0;
    std::size_t copy_bytes = 0;  // of operands that are repacked
};
HopperWorkspaceNeed hopper_workspace(const GemmProblem& problem, const KernelChoice& choice);

/// That memory.
struct HopperMemory {
    float* partials = nullptr;
    std::uint32_t* arrivals = nullptr;  // all zero before and after a launch
    std::byte* copies = nullptr;        // at a multiple of 128 bytes
};

/// Enqueues one kernel, or two if operands are repacked. The device is current, the problem eligible, and the workspace
/// as large as needed, its counters zero.
CallStatus launch_hopper(StreamRef stream, const GemmProblem& problem, const KernelChoice& choice,
                         const kernels::GemmArguments& arguments, const HopperMemory& workspace);

}  // namespace tessera::detail
