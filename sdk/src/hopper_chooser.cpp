#include "hopper_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hopper_launch.hpp"

namespace tessera::detail {

KernelChoice choose_hopper(const GemmProblem& problem, const DeviceProperties& device)
{
    for (const KernelChoice& choice : hopper_candidates(problem, device)) {
        if (!choice.stream_k) {
            return choice;
        }
    }
    return {};
}

std::string describe_hopper(const GemmProblem& problem, const KernelChoice& choice)
{
    const kernels::HopperKernel& kernel = kernels::hopper_kernels(size_of(problem.input))[choice.config];
    return fmt::format("{}{}, {} clusters of {}x{}x{} CTAs, bands of {} tiles{}", kernel.name,
                       choice.swapped ? " of the transposed product" : "", choice.clusters, choice.cluster_m,
                       choice.cluster_n, choice.cluster_k, choice.band, choice.stream_k ? ", stream-K" : "");
}

}  // namespace tessera::detail
