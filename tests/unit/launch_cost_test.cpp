/// What a launch enqueues, allocates and waits for: the table in docs/guide.md, "What a launch does", row by row.

#include <optional>

#include "clean_runtime.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/variant_chooser.hpp"
#include "heap_count.hpp"
#include "support/variants.hpp"
#include "tuning/tuner.hpp"
#include "tuning/tuning_table.hpp"

using namespace tessera;
using tessera::detail::KernelChoice;
using tessera::test::CleanRuntime;

namespace {

struct Cost {
    std::size_t kernels = 0;
    int allocations = 0;
    int waits = 0;
    long heap = 0;

    friend bool operator==(const Cost&, const Cost&) = default;
};

doctest::String toString(const Cost& cost)
{
    return (std::to_string(cost.kernels) + " kernels, " + std::to_string(cost.allocations) + " allocations, " +
            std::to_string(cost.waits) + " waits, " + std::to_string(cost.heap) + " heap allocations")
        .c_str();
}

template <class Work>
Cost cost_of(const Work& work)
{
    fake::clear_calls();
    const long heap = test::heap_allocations();
    work();
    const long after = test::heap_allocations();
    return {fake::launches().size(), fake::count("cudaMalloc") + fake::count("cudaMallocAsync"),
            fake::count("cudaStreamSynchronize") + fake::count("cudaDeviceSynchronize") +
                fake::count("cudaEventSynchronize"),
            after - heap};
}

struct CostRuntime : CleanRuntime {
    CostRuntime() { GemmTuningCache::clear(); }
    ~CostRuntime()
    {
        GemmTuningCache::clear();
        GemmPlan::release_workspaces();
    }

    /// Checks a plan's first and second launch on a stream of its own, a second launch without a plan, and a captured
    /// one.
    template <class T>
    void check(const Device& device, const GemmProblem& problem, Variant variant, std::size_t kernels, bool workspace)
    {
        device.make_current();  // so that a launch need not change it
        const GemmPlan plan = GemmPlan::prepare(device, problem, variant);
        CAPTURE(plan.explain());
        CHECK((plan.workspace_bytes() > 0) == workspace);
        CHECK(plan.workspace_bytes() <= device.properties().memory_bytes / 16);
        {
            const Stream stream(device);
            const auto span = [](std::int64_t lines, std::int64_t leading_dimension) {
                return static_cast<std::size_t>(lines * leading_dimension);
            };
            const GemmProblem& filled = plan.problem();
            const DeviceBuffer<T> a(stream, span(filled.m, filled.a.leading_dimension));
            const DeviceBuffer<T> b(stream, span(filled.k, filled.b.leading_dimension));
            DeviceBuffer<T> d(stream, span(filled.m, filled.d.leading_dimension));
            const auto launch = [&](StreamRef on) {
                plan.launch(on, a.matrix(filled.m, filled.k, filled.a.leading_dimension, RowMajor{}),
                            b.matrix(filled.k, filled.n, filled.b.leading_dimension, RowMajor{}),
                            d.matrix(filled.m, filled.n, filled.d.leading_dimension, RowMajor{}));
            };
            Cost first = cost_of([&] { launch(stream); });
            first.heap = 0;  // spent by the first launch on a device or stream
            CHECK(first == Cost{kernels, workspace ? 1 : 0, 0, 0});
            CHECK(cost_of([&] { launch(stream); }) == Cost{kernels, 0, 0, 0});
            // Of a workspace, its stream's id and capture.
            CHECK(fake::calls().size() <= kernels + 1 + (workspace ? 2 : 0) + (kernels > 1 ? 1 : 0));
            const auto launch_planless = [&] {
                Gemm::launch(stream, a.matrix(filled.m, filled.k, filled.a.leading_dimension, RowMajor{}),
                             b.matrix(filled.k, filled.n, filled.b.leading_dimension, RowMajor{}),
                             d.matrix(filled.m, filled.n, filled.d.leading_dimension, RowMajor{}), {}, variant);
            };
            launch_planless();
            CHECK(cost_of(launch_planless) == Cost{kernels, 0, 0, 0});
            CHECK(fake::calls().size() <= kernels + 1 + (workspace ? 2 : 0) + (kernels > 1 ? 1 : 0));
            {
                std::optional<Graph> graph;
                const Cost captured = cost_of([&] { graph = Graph::capture(stream, [&](StreamRef s) { launch(s); }); });
                CHECK(captured.allocations == (workspace ? 1 : 0));
                CHECK(captured.waits == (workspace ? 1 : 0));
                CHECK(graph->node_count() == kernels);
                CHECK(cost_of([&] { graph->launch(stream); }).allocations == 0);
            }
            stream.synchronize();
        }
        GemmPlan::release_workspaces();
    }
};

}  // namespace

TEST_CASE_FIXTURE(CostRuntime, "SIMT variants are one kernel, without an allocation or a wait")
{
    for (const int ordinal : {fake::t4, fake::h200, fake::b200}) {
        for (const Variant variant : simt_variants()) {
            check<float>(Device(ordinal), {.m = 64, .n = 64, .k = 64}, variant, 1, false);
        }
    }
}

TEST_CASE_FIXTURE(CostRuntime, "Blackwell products are one kernel without a wait, and allocate a workspace once")
{
    const Device device(fake::b200);
    GemmProblem problem{.m = 256, .n = 256, .k = 512, .input = ElementType::bf16, .output = ElementType::bf16};
    for (const std::int64_t leading_dimension : {512, 513}) {  // TMA cannot address the latter
        problem.a.leading_dimension = leading_dimension;
        if (GemmPlan::refusal(problem, device.properties(), Variant::blackwell).empty()) {
            check<bf16>(device, problem, Variant::blackwell, 1, false);
        }
    }
    problem.k = 65536;  // stream-K
    problem.a.leading_dimension = 0;
    if (GemmPlan::refusal(problem, device.properties(), Variant::blackwell).empty()) {
        check<bf16>(device, problem, Variant::blackwell, 1, true);
    }
}

TEST_CASE_FIXTURE(CostRuntime, "Hopper plans are one kernel, or two with repacking, and allocate a workspace once")
{
    const Device device(fake::h200);
    std::size_t kinds[2][2] = {};  // by sharing of tiles and repacking
    for (const std::int64_t leading_dimension : {4096, 4097}) {
        GemmProblem problem{.m = 256, .n = 256, .k = 4096, .input = ElementType::bf16, .output = ElementType::bf16};
        problem.a.leading_dimension = leading_dimension;
        problem = detail::resolved(problem);
        for (const KernelChoice& choice : detail::all_candidates(problem, device.properties())) {
            if (choice.variant != Variant::hopper) {
                continue;
            }
            const bool repacks = detail::hopper_workspace(problem, choice).copy_bytes > 0;
            if (++kinds[choice.stream_k ? 1 : 0][repacks ? 1 : 0] > 3) {
                continue;
            }
            GemmTuningCache::clear();
            detail::store_tuned(detail::tuning_key(problem, device.properties()), {choice, 1e-6, 2e-6, 1});
            check<bf16>(device, problem, Variant::automatic, repacks ? 2 : 1, choice.stream_k || repacks);
        }
    }
    if (!GemmPlan::refusal({.m = 256, .n = 256, .k = 4096, .input = ElementType::bf16}, device.properties(),
                           Variant::hopper)
             .empty()) {
        return;  // this build has no code for compute capability 9.0
    }
    CHECK(kinds[0][0] > 0);
    CHECK(kinds[1][0] > 0);
    CHECK(kinds[0][1] > 0);
    CHECK(kinds[1][1] > 0);
}
