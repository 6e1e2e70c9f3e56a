/// Where a product's workspace comes from: the caller, the library, a resource, or nowhere.

#include <fmt/format.h>

#include "clean_runtime.hpp"

using namespace tessera;
using tessera::test::CleanRuntime;

namespace {

/// On the fake H200: a product of few tiles and a long K, whose tiles are shared, and one whose A is copied first.
struct WorkspaceRuntime : CleanRuntime {
    Device device{fake::h200};
    Stream stream{device};
    GemmProblem shared{.m = 256, .n = 256, .k = 16384, .input = ElementType::bf16, .output = ElementType::f32};
    GemmProblem repacked = [] {
        GemmProblem problem{.m = 2048, .n = 2048, .k = 2047, .input = ElementType::bf16, .output = ElementType::f32};
        problem.a.row_major = true;
        return problem;
    }();
    DeviceBuffer<bf16> a{stream, 256 * 16384};
    DeviceBuffer<bf16> b{stream, 256 * 16384};
    DeviceBuffer<float> d{stream, 256 * 256};

    ~WorkspaceRuntime() { GemmPlan::release_workspaces(); }

    template <class... Rest>
    void launch(const GemmPlan& plan, Rest&&... rest)
    {
        plan.launch(stream, a.matrix(256, 16384), b.matrix(16384, 256), d.matrix(256, 256), {},
                    std::forward<Rest>(rest)...);
    }
    template <class... Rest>
    void launch_planless(Rest&&... rest)
    {
        Gemm::launch(stream, a.matrix(256, 16384), b.matrix(16384, 256), d.matrix(256, 256), {}, Variant::automatic,
                     std::forward<Rest>(rest)...);
    }
};

/// Says that a test is skipped, where the build has no kernel that needs a workspace.
bool skipped(const Device& device)
{
    if (GemmPlan::refusal(GemmProblem{.m = 64, .n = 64, .k = 64, .input = ElementType::bf16}, device.properties(),
                          Variant::hopper)
            .empty()) {
        return false;
    }
    MESSAGE("skipped: this build has no code for compute capability 9.0");
    return true;
}

int allocations() { return fake::count("cudaMallocAsync") + fake::count("cudaMalloc"); }

}  // namespace

TEST_CASE_FIXTURE(WorkspaceRuntime, "a launch with a caller's workspace allocates nothing, not even the first time")
{
    if (skipped(device)) {
        return;
    }
    const GemmPlan plan = GemmPlan::prepare(device, shared);
    REQUIRE(plan.workspace_bytes() > 0);
    DeviceBuffer<std::byte> scratch(stream, plan.workspace_bytes());
    fake::clear_calls();
    launch(plan, scratch);
    launch(plan, scratch.span());
    launch_planless(scratch);
    CHECK(allocations() == 0);
    CHECK(fake::launches().size() == 3);
    CHECK(fake::count("cudaMemsetAsync") == 3);  // clears the counters
    launch(plan);
    CHECK(allocations() == 1);  // the library's own
    CHECK(fake::count("cudaMemsetAsync") == 4);
    launch(plan);
    CHECK(allocations() == 1);
    CHECK(fake::count("cudaMemsetAsync") == 4);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "a plan refuses an unsuitable workspace with the values, and enqueues nothing")
{
    if (skipped(device)) {
        return;
    }
    const GemmPlan plan = GemmPlan::prepare(device, shared);
    const std::size_t bytes = plan.workspace_bytes();
    const Stream there{Device(fake::b200)};
    DeviceBuffer<std::byte> scratch(stream, bytes + 256);
    DeviceBuffer<std::byte> foreign(there, bytes);
    fake::clear_calls();
    CHECK_ERROR(
        fmt::format(
            "tessera: out_of_range in GemmPlan::launch\n  the launch needs a workspace of {} bytes, but the "
            "given one has {}\n  try: ask the plan's workspace_bytes() for the size, or prepare a plan with a limit",
            bytes, bytes - 1),
        plan.launch(stream, a.matrix(256, 16384), b.matrix(16384, 256), d.matrix(256, 256), {},
                    scratch.subspan(0, bytes - 1)));
    const auto code_of = [&](const Workspace& workspace) {
        const auto error = test::error_of([&] { launch(plan, workspace); });
        return error ? error->code() : ErrorCode{};
    };
    CHECK(code_of(scratch.subspan(1, bytes)) == ErrorCode::misaligned);
    CHECK(code_of(foreign) == ErrorCode::device_mismatch);
    CHECK(code_of(Workspace::at_most(bytes - 1)) == ErrorCode::out_of_range);
    CHECK(code_of(DeviceSpan<std::byte>()) == ErrorCode::out_of_range);
    const auto in = [&](auto& buffer) {
        return DeviceSpan<std::byte>(reinterpret_cast<std::byte*>(buffer.data()), bytes, buffer.device());
    };
    for (const auto& [span, name] : {std::pair{in(a), "A"}, std::pair{in(b), "B"}, std::pair{in(d), "D"}}) {
        CHECK_ERROR(
            fmt::format("tessera: aliasing in GemmPlan::launch\n  the workspace at {} overlaps {}\n  try: give the "
                        "workspace memory of its own",
                        fmt::ptr(span.data()), name),
            plan.launch(stream, a.matrix(256, 16384), b.matrix(16384, 256), d.matrix(256, 256), {}, span));
    }
    CHECK(fake::launches().empty());
    CHECK(fake::count("cudaMemsetAsync") == 0);
    launch(plan, scratch.subspan(256, bytes));
    launch(plan, Workspace::at_most(bytes));
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "a launch without a plan chooses a kernel that fits the given workspace")
{
    if (skipped(device)) {
        return;
    }
    const std::size_t wanted = GemmPlan::prepare(device, shared).workspace_bytes();
    DeviceBuffer<std::byte> scratch(stream, wanted - 1);
    fake::clear_calls();
    launch_planless(scratch);
    launch_planless(DeviceSpan<std::byte>());
    launch_planless(Workspace::at_most(0));
    CHECK(fake::launches().size() == 3);
    CHECK(allocations() == 0);
    launch_planless(Workspace());
    CHECK(allocations() == 1);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "a workspace limit keeps a plan from sharing tiles and from repacking")
{
    if (skipped(device)) {
        return;
    }
    for (const GemmProblem& problem : {shared, repacked}) {
        const GemmPlan free = GemmPlan::prepare(device, problem);
        CAPTURE(free.explain());
        CHECK(free.workspace_bytes() > 0);
        const GemmPlan none = GemmPlan::prepare(device, problem, Variant::automatic, 0);
        CHECK(none.workspace_bytes() == 0);
        CHECK(none.variant() == Variant::hopper);
        CHECK(none.explain().find("chosen among kernels that need a workspace of at most 0 bytes") !=
              std::string::npos);
        CHECK(none.explain().find("repacked") == std::string::npos);
        CHECK(free.explain().find("at most") == std::string::npos);
        const GemmPlan as_much = GemmPlan::prepare(device, problem, Variant::hopper, free.workspace_bytes());
        CHECK(as_much.workspace_bytes() == free.workspace_bytes());
    }
    CHECK(GemmPlan::prepare(device, repacked).explain().find("repacked") != std::string::npos);
    fake::clear_calls();
    launch(GemmPlan::prepare(device, shared, Variant::automatic, 0));
    CHECK(allocations() == 0);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "a captured launch with a workspace is a memset and a kernel, without graph memory")
{
    if (skipped(device)) {
        return;
    }
    const GemmPlan plan = GemmPlan::prepare(device, shared);
    DeviceBuffer<std::byte> scratch(stream, plan.workspace_bytes());
    fake::clear_calls();
    const Graph graph = Graph::capture(stream, [&](StreamRef) { launch(plan, scratch); });
    CHECK(graph.node_count() == 2);
    CHECK(allocations() == 0);
    CHECK(fake::live().user_objects == 0);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "the library's workspaces come from the resource that is set for the device")
{
    if (skipped(device)) {
        return;
    }
    struct Resource {
        int allocations = 0;
        int frees = 0;
        void* allocate(std::size_t bytes, cudaStream_t stream)
        {
            ++allocations;
            void* memory = nullptr;
            CHECK(cudaMallocAsync(&memory, bytes, stream) == cudaSuccess);
            return memory;
        }
        void deallocate(void* memory, std::size_t, cudaStream_t stream)
        {
            ++frees;
            CHECK(cudaFreeAsync(memory, stream) == cudaSuccess);
        }
    };
    Resource resource;
    GemmPlan::set_workspace_resource(device, resource);
    launch_planless();
    launch_planless();
    CHECK(resource.allocations == 1);
    GemmPlan::set_workspace_resource(device, {});
    GemmPlan::release_workspaces();
    CHECK(resource.frees == 1);
    launch_planless();
    CHECK(resource.allocations == 1);
}
