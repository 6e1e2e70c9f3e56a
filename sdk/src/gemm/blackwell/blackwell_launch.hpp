#pragma once

/// The Blackwell side of a launch: eligibility, candidates, shared-memory layouts, tensor maps, grid.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/call_status.hpp"
#include "gemm/encoded_launch.hpp"
#include "gemm/variant_chooser.hpp"
#include "gemm/workspace_need.hpp"
#include "kernels/blackwell/blackwell_arguments.hpp"
#include "kernels/blackwell/blackwell_kernels.hpp"
#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// Returns true if the device has tensor memory, and so can run the kernels: compute capability 10.0, 10.3 and 11.0.
inline bool has_tensor_memory(const DeviceProperties& device)
{
    return device.compute_capability_major == 10 || device.compute_capability_major == 11;
}

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

/// Returns the stages of K of a tile.
std::int64_t blackwell_stages(const GemmProblem& problem);

/// Returns the clusters that run at the same time, one CTA on each SM.
std::int64_t blackwell_cluster_slots(const DeviceProperties& device, std::uint32_t cluster);

/// Calls `visit` with all choices worth trying for an eligible problem. Allocates nothing.
template <class Visit>
void for_each_blackwell_candidate(const GemmProblem& problem, const DeviceProperties& device, Visit&& visit)
{
    constexpr std::int64_t max_swapped_n = 512;          // beyond, few tiles are empty in part
    constexpr std::int64_t most_waves_to_share = 8;      // beyond, the idle share of the last wave is small
    constexpr std::int64_t fewest_stages_of_a_part = 4;  // fewer do not pay for summing up
    const auto table = kernels::blackwell_kernels(size_of(problem.input));
    for (std::size_t config = 0; config < table.size(); ++config) {
        for (const bool swapped : {false, true}) {
            const kernels::BlackwellConfig& tile = *table[config].config;
            KernelChoice choice{.variant = Variant::blackwell,
                                .config = static_cast<std::uint8_t>(config),
                                .swapped = swapped,
                                .band = blackwell_band(tile, device.sm_count)};
            const BlackwellShape shape = blackwell_shape(problem, swapped);
            if ((swapped && shape.n > max_swapped_n) || !is_blackwell_choice_valid(problem, choice)) {
                continue;
            }
            visit(choice);
            // Sharing tiles pays off if whole tiles would leave SMs idle.
            const std::int64_t tiles = blackwell_units(tile, shape);
            const std::int64_t stages = blackwell_stages(problem);
            const std::int64_t fit = std::max<std::int64_t>(blackwell_cluster_slots(device, tile.cluster), 1);
            if (!tile.shares_tiles() || tiles == 0 || tiles > most_waves_to_share * fit ||
                stages < 2 * fewest_stages_of_a_part) {
                continue;
            }
            choice.stream_k = true;
            const auto share = [&](std::int64_t clusters) {
                choice.clusters = static_cast<std::uint16_t>(std::min<std::int64_t>(clusters, 0xFFFF));
                if (is_blackwell_choice_valid(problem, choice)) {
                    visit(choice);
                }
            };
            if (tiles % fit != 0) {
                share(std::min(fit, tiles * stages / fewest_stages_of_a_part));
            }
            if (tiles < fit && fit % tiles != 0) {
                share(fit / tiles * tiles);  // every cluster has the same part of one tile
            }
        }
    }
}

/// Returns what a launch needs besides its operands.
WorkspaceNeed blackwell_workspace(const GemmProblem& problem, const KernelChoice& choice);

/// Fills in `launch`. The device must be current, the problem eligible, and the workspace large enough, with its counters
/// zero.
CallStatus encode_blackwell(EncodedLaunch& launch, const GemmProblem& problem, const KernelChoice& choice,
                            const kernels::GemmArguments& arguments, const DeviceProperties& device,
                            const WorkspaceMemory& workspace);

/// Encodes and enqueues a kernel that need not be in the library's table, for tests and examples. `choice.config` does not
/// count.
CallStatus launch_blackwell(StreamRef stream, const GemmProblem& problem, const kernels::BlackwellKernel& kernel,
                            const KernelChoice& choice, const kernels::GemmArguments& arguments,
                            const WorkspaceMemory& workspace);

}  // namespace tessera::detail
