#pragma once

/// Runs tensor-core products in a configuration of the caller's choice. For tests and benchmarks.

#include <set>
#include <tuple>
#include <vector>

#include "sdk/src/gemm/backend.hpp"
#include "sdk/src/tuning/tuner.hpp"
#include "sdk/src/tuning/tuning_table.hpp"
#include "tessera/gemm_tuner.hpp"

namespace tessera::test {

/// Returns one candidate of each kind: of a variant, with and without shared tiles, split K, exchanged operands,
/// clusters, copies by threads, and repacking.
inline std::vector<detail::KernelChoice> one_of_each_kind(const GemmProblem& problem, const DeviceProperties& device)
{
    std::vector<detail::KernelChoice> found;
    std::set<std::tuple<Variant, bool, bool, bool, bool, bool>> kinds;
    for (const detail::KernelChoice& choice : detail::all_candidates(problem, device)) {
        const detail::Backend& backend = detail::backend_of(choice.variant);
        if (backend.has_tensor_cores_of(device) &&
            kinds
                .emplace(choice.variant, choice.stream_k, choice.cluster_k > 1, choice.swapped,
                         choice.cluster_m * choice.cluster_n > 1, backend.workspace(problem, choice).copy_bytes > 0)
                .second) {
            found.push_back(choice);
        }
    }
    return found;
}

/// While it exists, `choice` counts as the measured one, and no other product has one.
class ForcedChoice {
public:
    ForcedChoice(const GemmProblem& problem, const DeviceProperties& device, const detail::KernelChoice& choice)
    {
        GemmTuningCache::clear();
        detail::store_tuned(detail::tuning_key(problem, device), {choice, 1, 2, 1});
    }
    ~ForcedChoice() { GemmTuningCache::clear(); }
    ForcedChoice(const ForcedChoice&) = delete;
    ForcedChoice& operator=(const ForcedChoice&) = delete;
};

}  // namespace tessera::test
