#pragma once

/// The Blackwell side of a launch: eligibility, candidates, shared-memory layouts, tensor maps, grid.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/call_status.hpp"
#include "gemm/encoded_launch.hpp"
#include "gemm/variant_chooser.hpp"
#include "kernels/blackwell/blackwell_arguments.hpp"
#include "kernels/blackwell/blackwell_kernels.hpp"
#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// The first compute capability of the family that the kernels are compiled for.
inline constexpr int blackwell_compute_capability = 100;

/// The problem as the kernel sees it: transposed if D is column-major, and again if `swapped`.
struct BlackwellShape {
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    std::int64_t batches;
    bool copies;  // TMA cannot address A or B
};

BlackwellShape blackwell_shape(const GemmProblem& problem, bool swapped);

/// Returns the height of a raster group, in tiles. Clusters that run at the same time then cover roughly a square of D,
/// which reads the least of A and B.
std::uint8_t blackwell_band(const kernels::BlackwellConfig& config, int sm_count);

/// Returns the number of work tiles: cluster tiles of all batches. Saturates beyond what a grid can have.
std::int64_t blackwell_units(const kernels::BlackwellConfig& config, const BlackwellShape& shape);

/// Returns nothing if the Blackwell kernels give the right answer for `problem` on `device`. `problem` must be resolved.
std::optional<Refusal> find_blackwell_refusal(const GemmProblem& problem, const DeviceProperties& device);

/// Returns true if `choice` can run `problem`, so that a tuner may try it.
bool is_blackwell_choice_valid(const GemmProblem& problem, const KernelChoice& choice);

/// Calls `visit` with all choices worth trying for an eligible problem. Allocates nothing.
template <class Visit>
void for_each_blackwell_candidate(const GemmProblem& problem, const DeviceProperties& device, Visit&& visit)
{
    constexpr std::int64_t max_swapped_n = 128;  // beyond, a tile's height is not wasted
    const auto table = kernels::blackwell_kernels(size_of(problem.input));
    for (std::size_t config = 0; config < table.size(); ++config) {
        for (const bool swapped : {false, true}) {
            const KernelChoice choice{.variant = Variant::blackwell,
                                      .config = static_cast<std::uint8_t>(config),
                                      .swapped = swapped,
                                      .band = blackwell_band(*table[config].config, device.sm_count)};
            if (!(swapped && blackwell_shape(problem, true).n > max_swapped_n) &&
                is_blackwell_choice_valid(problem, choice)) {
                visit(choice);
            }
        }
    }
}

/// Fills in `launch`. The device must be current and the problem eligible.
CallStatus encode_blackwell(EncodedLaunch& launch, const GemmProblem& problem, const KernelChoice& choice,
                            const kernels::GemmArguments& arguments, const DeviceProperties& device);

/// Encodes and enqueues a kernel that need not be in the library's table, for tests and examples. Only `choice`'s
/// `swapped` and `band` count.
CallStatus launch_blackwell(StreamRef stream, const GemmProblem& problem, const kernels::BlackwellKernel& kernel,
                            const KernelChoice& choice, const kernels::GemmArguments& arguments);

}  // namespace tessera::detail
