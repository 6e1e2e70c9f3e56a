/// Scenario 2: one product by the library's kernel for Hopper or Blackwell, in clusters whose CTAs share operands by multicast, and
/// without. The public API chooses clusters by itself, so this asks the library's own layer for one choice of each kind.

#include <algorithm>

#include "kernels/blackwell/blackwell_kernels.hpp"
#include "scenarios/operands.hpp"
#include "sdk/src/gemm/backend.hpp"
#include "sdk/src/gemm/gemm_operands.hpp"
#include "tessera/gemm.hpp"

namespace tessera::scenarios {
namespace {

struct Choices {
    detail::KernelChoice alone;
    detail::KernelChoice in_clusters;
};

/// CTAs of a cluster.
std::uint32_t cluster_of(const GemmProblem& problem, const detail::KernelChoice& choice)
{
    if (choice.variant == Variant::blackwell) {
        return kernels::blackwell_kernels(size_of(problem.input))[choice.config].config->cluster;
    }
    return std::uint32_t{choice.cluster_m} * choice.cluster_n * choice.cluster_k;
}

/// Returns the choices to compare: in clusters the library's own, or else the first one; alone one of the same tile, or else the one
/// with the largest tile. None has a workspace.
Choices choices_of(const detail::Backend& backend, Variant variant, const detail::GemmRequest& request)
{
    std::vector<detail::KernelChoice> candidates;
    backend.add_candidates(variant, request, candidates);
    std::erase_if(candidates, [](const detail::KernelChoice& choice) {
        return choice.stream_k || choice.swapped || choice.cluster_k != 1;
    });
    const auto is_alone = [&](const detail::KernelChoice& choice) { return cluster_of(request.problem, choice) == 1; };
    const detail::KernelChoice own = backend.choose(variant, request, 0);
    auto in_clusters = std::find_if(candidates.begin(), candidates.end(),
                                    [&](const auto& choice) { return choice == own && !is_alone(choice); });
    if (in_clusters == candidates.end()) {
        in_clusters = std::find_if_not(candidates.begin(), candidates.end(), is_alone);
    }
    if (in_clusters == candidates.end()) {
        throw Skip("no kernel in clusters can run the product");
    }
    auto alone = std::find_if(candidates.begin(), candidates.end(), [&](const auto& choice) {
        return is_alone(choice) && choice.config == in_clusters->config && choice.band == in_clusters->band;
    });
    if (alone == candidates.end()) {  // Blackwell's configurations have clusters of one size each
        const auto last = std::find_if(candidates.rbegin(), candidates.rend(), is_alone);
        if (last == candidates.rend()) {
            throw Skip("no kernel without clusters can run the product");
        }
        alone = last.base() - 1;
    }
    return {*alone, *in_clusters};
}

}  // namespace

Outcome run_clusters(const Context& context)
{
    const DeviceProperties& device = context.device.properties();
    const std::int64_t m = context.full ? 8192 : 512, n = context.full ? 8192 : 256, k = context.full ? 8192 : 128;
    const GemmProblem problem{.m = m, .n = n, .k = k, .input = ElementType::bf16, .output = ElementType::bf16};
    Variant variant = Variant::automatic;
    for (const Variant candidate : {Variant::blackwell, Variant::hopper}) {
        if (GemmPlan::refusal(problem, device, candidate).empty()) {
            variant = candidate;
            break;
        }
    }
    if (variant == Variant::automatic) {
        throw Skip(fmt::format("it needs compute capability 9.0 or 10.x, and {} has {}.{}", device.name,
                               device.compute_capability_major, device.compute_capability_minor));
    }
    Outcome outcome;
    outcome.work = fmt::format("{}x{}x{} in bf16", m, n, k);

    const Stream stream(context.device);
    const auto host_a = normal_values<bf16>(context, m * k, 1);
    const auto host_b = normal_values<bf16>(context, k * n, 2, 1 / std::sqrt(static_cast<float>(k)));
    const auto a = DeviceBuffer<bf16>::from_host(stream, host_a);
    const auto b = DeviceBuffer<bf16>::from_host(stream, host_b);
    DeviceBuffer<bf16> d(stream, static_cast<std::size_t>(m * n)),
        d_in_clusters(stream, static_cast<std::size_t>(m * n));
    d.fill(stream, poison<bf16>());
    d_in_clusters.fill(stream, poison<bf16>());
    const auto operands = [&](DeviceBuffer<bf16>& to) {
        return detail::GemmOperands{a.matrix(m, k), b.matrix(k, n), to.matrix(m, n)};
    };
    const GemmProblem resolved = detail::problem_of(operands(d), {});
    const detail::Backend& backend = detail::backend_of(variant);
    const Choices choices = choices_of(backend, variant, {resolved, device});
    const auto entry = [&](const detail::KernelChoice& choice, DeviceBuffer<bf16>& to) {
        return [&, choice](Recorder& recorder) {
            recorder.on_stream("product", stream, [&] {
                detail::enqueue_gemm(stream, operands(to), {}, resolved, device, choice, "tessera-scenarios",
                                     std::source_location::current());
            });
            stream.synchronize();
        };
    };
    stream.synchronize();
    measure(context, outcome, entry(choices.alone, d), entry(choices.in_clusters, d_in_clusters));

    outcome.notes.push_back(fmt::format("baseline: {}", backend.describe_config(resolved, choices.alone)));
    outcome.notes.push_back(fmt::format("optimized: {}, clusters of {} CTAs",
                                        backend.describe_config(resolved, choices.in_clusters),
                                        cluster_of(resolved, choices.in_clusters)));
    const bench::Problem judged = product_of(m, n, k, ElementType::bf16, ElementType::bf16);
    const auto result = d.to_vector();
    const auto result_in_clusters = d_in_clusters.to_vector();
    outcome.checks.push_back(equal_bits("both entries", bytes_of(result), bytes_of(result_in_clusters)));
    outcome.checks.push_back(check_product<bf16, bf16>(context, "optimized against float64", judged, host_a, host_b,
                                                       result_in_clusters, bench::Accumulation::tensor_core));
    for (const auto& [name, times] :
         {std::pair("baseline", &outcome.baseline), std::pair("optimized", &outcome.optimized)}) {
        outcome.figures.push_back({name, judged.flops() / times->phases[0].device_seconds * 1e-12, "TFLOP/s"});
    }
    return outcome;
}

}  // namespace tessera::scenarios
