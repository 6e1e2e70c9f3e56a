/// The choice of an mma.sync configuration: where the last wave of tiles is divided among CTAs, and what that needs.

#include <string>
#include <vector>

#include "clean_runtime.hpp"
#include "gemm/mma/mma_launch.hpp"
#include "gemm/variant_chooser.hpp"
#include "gemm/workspace.hpp"
#include "variant_problems.hpp"

using namespace tessera;
using namespace tessera::test;
using detail::KernelChoice;

namespace {

GemmProblem layer(std::int64_t m, std::int64_t n, std::int64_t k)
{
    GemmProblem problem = problem_of(m, n, k);
    problem.input = problem.output = ElementType::bf16;
    problem.b.row_major = false;
    return detail::resolved(problem);
}

/// A Hopper GPU with 132 SMs, or nothing if this build has no code for it.
std::optional<DeviceProperties> hopper_gpu()
{
    DeviceProperties device = device_of(9, 0);
    device.sm_count = 132;
    if (!detail::has_mma_code(ElementType::bf16, device)) {
        return std::nullopt;
    }
    return device;
}

}  // namespace

TEST_CASE("mma_sync divides the last tiles along K where its model expects that to be faster, and explain says so")
{
    const std::optional<DeviceProperties> device = hopper_gpu();
    if (!device) {
        return;
    }
    const auto chosen = [&](const GemmProblem& problem) {
        return detail::choose_mma(problem, *device, detail::unlimited_workspace);
    };
    // 224 tiles of 256x128 are 1.7 waves.
    const GemmProblem partial = layer(2048, 3584, 18944);
    const KernelChoice choice = chosen(partial);
    CHECK(choice.stream_k);
    CHECK(choice.cluster_k == 2);
    CHECK(choice.clusters == 224 - 132);
    const std::string text = GemmPlan::explain(partial, *device, Variant::mma_sync);
    CHECK_MESSAGE(text.find("224 tiles in raster groups of 8, the last 92 in 2 parts along K each: stream-K") !=
                      std::string::npos,
                  text);
    CHECK(chosen(layer(2048, 1280, 8192)).stream_k);

    CHECK_FALSE(chosen(layer(4096, 4096, 4096)).stream_k);  // four waves, nearly
    CHECK_FALSE(chosen(layer(64, 1024, 64)).stream_k);      // too few steps to divide
}

TEST_CASE("mma_sync: only divided tiles need a workspace, whose limit is kept")
{
    const std::optional<DeviceProperties> device = hopper_gpu();
    if (!device) {
        return;
    }
    const GemmProblem problem = layer(2048, 3584, 18944);
    const KernelChoice choice = detail::choose_mma(problem, *device, detail::unlimited_workspace);
    REQUIRE(choice.stream_k);
    const detail::WorkspaceNeed need = detail::mma_workspace(problem, choice);
    const kernels::MmaConfig& config = *kernels::mma_kernels(problem.input)[choice.config].config;
    CHECK(need.counters == choice.clusters);
    CHECK(need.partial_bytes == std::size_t{choice.clusters} * choice.cluster_k * sizeof(float) *
                                    static_cast<std::size_t>(config.tile_m * config.tile_n));
    const std::size_t bytes = detail::workspace_bytes(need);
    CHECK(detail::choose_mma(problem, *device, bytes) == choice);
    for (const std::size_t limit : {bytes - 1, bytes / 4, std::size_t{0}}) {
        const KernelChoice smaller = detail::choose_mma(problem, *device, limit);
        CHECK(smaller != choice);
        CHECK(detail::workspace_bytes(detail::mma_workspace(problem, smaller)) <= limit);
    }
}

TEST_CASE("mma_sync: a tuner is offered divided last tiles, and a stored choice that cannot be is refused")
{
    const std::optional<DeviceProperties> device = hopper_gpu();
    if (!device) {
        return;
    }
    const GemmProblem problem = layer(2048, 3584, 18944);
    std::vector<KernelChoice> candidates;
    detail::add_mma_candidates(problem, *device, candidates);
    std::size_t divided = 0;
    for (const KernelChoice& choice : candidates) {
        CHECK(detail::is_mma_choice_valid(problem, *device, choice));
        divided += choice.stream_k ? 1 : 0;
    }
    CHECK(divided > 0);
    CHECK(divided < candidates.size());

    KernelChoice choice = detail::choose_mma(problem, *device, detail::unlimited_workspace);
    REQUIRE(choice.stream_k);
    const auto is_refused = [&](auto change) {
        KernelChoice changed = choice;
        change(changed);
        return !detail::is_mma_choice_valid(problem, *device, changed);
    };
    CHECK(is_refused([](KernelChoice& changed) { changed.clusters = 0; }));
    CHECK(is_refused([](KernelChoice& changed) { changed.clusters = 225; }));  // of 224 tiles
    CHECK(is_refused([](KernelChoice& changed) { changed.cluster_k = 1; }));
    CHECK_FALSE(is_refused([](KernelChoice& changed) { changed.clusters = 224; }));
    CHECK_FALSE(is_refused([](KernelChoice& changed) { changed.cluster_k = 200; }));
}
