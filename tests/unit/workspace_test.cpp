/// Workspaces: which memory a launch gets, when it is allocated and freed, and that nothing leaks after a failure.

#include "gemm/workspace.hpp"

#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "clean_runtime.hpp"
#include "gemm/variant_chooser.hpp"

using namespace tessera;
using tessera::detail::max_streams;
using tessera::detail::WorkspaceNeed;
using HopperWorkspace = tessera::detail::WorkspaceMemory;
using tessera::test::CleanRuntime;

namespace {

constexpr WorkspaceNeed small{.partial_bytes = 1000, .counters = 10};
constexpr WorkspaceNeed large{.partial_bytes = 5000, .counters = 100};

struct WorkspaceRuntime : CleanRuntime {
    ~WorkspaceRuntime() { GemmPlan::release_workspaces(); }
};

HopperWorkspace workspace_of(StreamRef stream, WorkspaceNeed need)
{
    const detail::CurrentDevice current(stream.device(), "test", std::source_location::current());
    return detail::lease_workspace(stream, need, Workspace(), "test", std::source_location::current()).memory();
}

/// Leases a workspace and, like a launch, enqueues work while the lease lasts.
HopperWorkspace launch_with_workspace(StreamRef stream, WorkspaceNeed need)
{
    const auto caller = std::source_location::current();
    const detail::CurrentDevice current(stream.device(), "test", caller);
    const auto lease = detail::lease_workspace(stream, need, Workspace(), "test", caller);
    detail::check(cudaMemsetAsync(lease.memory().partials, 0xFF, need.partial_bytes, stream.get()), "cudaMemsetAsync",
                  "test", caller);
    return lease.memory();
}

/// What a kernel would find there: copied in the order of the stream.
std::vector<std::uint32_t> counters_of(StreamRef stream, const HopperWorkspace& workspace, std::size_t count)
{
    std::vector<std::uint32_t> values(count, 77);
    REQUIRE(cudaMemcpyAsync(values.data(), workspace.arrivals, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost,
                            stream.get()) == cudaSuccess);
    return values;
}

/// Overwrites the sums, whose content is undefined between launches.
void dirty_sums(StreamRef stream, const HopperWorkspace& workspace, std::size_t bytes)
{
    REQUIRE(cudaMemsetAsync(workspace.partials, 0xFF, bytes, stream.get()) == cudaSuccess);
}

bool operator==(const HopperWorkspace& a, const HopperWorkspace& b)
{
    return a.partials == b.partials && a.arrivals == b.arrivals;
}

}  // namespace

TEST_CASE_FIXTURE(WorkspaceRuntime, "a launch without need gets no workspace and makes no CUDA call for it")
{
    const Stream stream;
    const StreamRef ref = stream;
    fake::clear_calls();
    const auto lease = detail::lease_workspace(ref, {}, Workspace(), "test", std::source_location::current());
    CHECK(lease.memory().partials == nullptr);
    CHECK(fake::calls().empty());
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "the first launch allocates in the stream's order, and later ones reuse the memory")
{
    const Stream stream;
    const HopperWorkspace first = workspace_of(stream, small);
    CHECK(fake::count("cudaMallocAsync") == 1);
    CHECK(fake::count("cudaMemsetAsync") == 1);
    CHECK(reinterpret_cast<std::uintptr_t>(first.partials) % 256 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(first.arrivals) % 256 == 0);
    dirty_sums(stream, first, small.partial_bytes);
    CHECK(counters_of(stream, first, small.counters) == std::vector<std::uint32_t>(small.counters, 0));
    fake::clear_calls();
    CHECK((workspace_of(stream, small) == first));
    for (const fake::Call& call : fake::calls()) {
        const bool question =
            call.name == "cudaStreamGetId" || call.name == "cudaStreamIsCapturing" || call.name == "cudaGetDevice";
        CHECK(question);
    }
}

TEST_CASE_FIXTURE(WorkspaceRuntime,
                  "growing memory has zeroed counters, and the old memory is freed in the stream's order")
{
    const Stream stream;
    dirty_sums(stream, workspace_of(stream, small), small.partial_bytes);
    fake::hold(stream.get());
    fake::clear_calls();
    const HopperWorkspace grown = workspace_of(stream, large);
    CHECK(fake::count("cudaFreeAsync") == 1);
    CHECK(fake::count("cudaStreamSynchronize") + fake::count("cudaDeviceSynchronize") == 0);
    CHECK(fake::live().device_allocations == 1);
    dirty_sums(stream, grown, large.partial_bytes);
    CHECK(counters_of(stream, grown, large.counters) == std::vector<std::uint32_t>(large.counters, 0));
    CHECK((workspace_of(stream, small) == grown));
    // More counters and fewer sums: neither shrinks.
    const HopperWorkspace more = workspace_of(stream, {.partial_bytes = 10, .counters = 1000});
    CHECK((workspace_of(stream, large) == more));
    CHECK(counters_of(stream, more, 1000) == std::vector<std::uint32_t>(1000, 0));
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "copies of operands come after the sums and reuse the memory of earlier launches")
{
    const Stream stream;
    const WorkspaceNeed copies{.copy_bytes = 6000};
    const HopperWorkspace alone = workspace_of(stream, copies);
    CHECK(reinterpret_cast<std::uintptr_t>(alone.copies) % 128 == 0);
    CHECK(cudaMemsetAsync(alone.copies, 0xFF, copies.copy_bytes, StreamRef(stream).get()) == cudaSuccess);

    const WorkspaceNeed both{.partial_bytes = 1000, .counters = 10, .copy_bytes = 3000};
    const HopperWorkspace shared = workspace_of(stream, both);
    CHECK(reinterpret_cast<std::byte*>(shared.partials) + both.partial_bytes <= shared.copies);
    CHECK(reinterpret_cast<std::uintptr_t>(shared.copies) % 128 == 0);
    dirty_sums(stream, shared, both.partial_bytes);
    CHECK(cudaMemsetAsync(shared.copies, 0xFF, both.copy_bytes, StreamRef(stream).get()) == cudaSuccess);
    CHECK(counters_of(stream, shared, both.counters) == std::vector<std::uint32_t>(both.counters, 0));

    fake::clear_calls();
    CHECK(workspace_of(stream, {.partial_bytes = 5000, .counters = 3}).arrivals == shared.arrivals);
    CHECK(workspace_of(stream, copies).arrivals == shared.arrivals);
    CHECK(fake::count("cudaMallocAsync") == 0);  // 6000 bytes after the counters are enough for each of them
    CHECK(fake::misuses() == std::vector<std::string>{});
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "out of memory: the error names the requested bytes")
{
    const Stream stream;
    fake::fail_call("cudaMallocAsync", 1, cudaErrorMemoryAllocation);
    const auto error = test::error_of([&] { static_cast<void>(workspace_of(stream, {.copy_bytes = 6000})); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::out_of_memory);
    CHECK_MESSAGE(std::string(error->what()).find("while allocating a workspace of 6000 bytes") != std::string::npos,
                  error->what());
    static_cast<void>(cudaGetLastError());
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "each stream and each device has its own workspace")
{
    const Stream one;
    const Stream two;
    const Stream other{Device(fake::b200)};
    const HopperWorkspace first = workspace_of(one, small);
    CHECK_FALSE((workspace_of(two, small) == first));
    CHECK_FALSE((workspace_of(other, small) == first));
    CHECK((workspace_of(one, small) == first));
    const StreamRef standard = Device(fake::h200).default_stream();
    CHECK_FALSE((workspace_of(standard, small) == first));
    CHECK(fake::live().device_allocations == 4);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "a destroyed stream frees its memory")
{
    {
        const Stream stream;
        static_cast<void>(workspace_of(stream, small));
        CHECK(fake::live().device_allocations == 1);
    }
    CHECK(fake::live().device_allocations == 0);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "a device without pools frees only after a wait")
{
    const Stream stream{Device(fake::t4)};
    static_cast<void>(workspace_of(stream, small));
    CHECK(fake::count("cudaMalloc") == 1);
    static_cast<void>(workspace_of(stream, large));
    CHECK(fake::count("cudaStreamSynchronize") == 1);
    CHECK(fake::live().device_allocations == 1);
}

TEST_CASE_FIXTURE(WorkspaceRuntime,
                  "release_workspaces() frees what destroyed raw streams left, and later launches work")
{
    cudaStream_t raw = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking) == cudaSuccess);
    static_cast<void>(workspace_of(StreamRef(raw), small));
    REQUIRE(cudaStreamDestroy(raw) == cudaSuccess);
    CHECK(fake::live().device_allocations == 1);
    GemmPlan::release_workspaces();
    CHECK(fake::live().device_allocations == 0);
    const Stream stream;
    static_cast<void>(workspace_of(stream, small));
    CHECK(fake::live().device_allocations == 1);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "the memory of raw streams is bounded, and the least recently used is freed")
{
    std::vector<cudaStream_t> streams(max_streams + 3);
    HopperWorkspace first{};
    for (cudaStream_t& stream : streams) {
        REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
        const HopperWorkspace made = workspace_of(StreamRef(stream), small);
        dirty_sums(StreamRef(stream), made, small.partial_bytes);
        first = stream == streams[0] ? made : first;
        CHECK((workspace_of(StreamRef(streams[0]), small) == first));  // always used
    }
    CHECK(fake::live().device_allocations == static_cast<int>(max_streams));
    for (const cudaStream_t stream : streams) {
        REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
    }
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "a captured launch uses memory of its graph and adds no node of its own")
{
    const Stream stream;
    const HopperWorkspace outside = workspace_of(stream, small);
    {
        HopperWorkspace inside{};
        std::optional<Graph> graph = Graph::capture(stream, [&](StreamRef captured) {
            inside = launch_with_workspace(captured, small);
            REQUIRE(cudaMemsetAsync(inside.partials, 0, 1, captured.get()) == cudaSuccess);  // something in between
            CHECK((launch_with_workspace(captured, small) == inside));                       // it follows the first one
            CHECK_FALSE((launch_with_workspace(captured, large) == inside));
        });
        CHECK(graph->node_count() == 4);
        CHECK_FALSE((inside == outside));
        CHECK(counters_of(stream, inside, small.counters) == std::vector<std::uint32_t>(small.counters, 0));
        const Graph second = Graph::capture(
            stream, [&](StreamRef captured) { CHECK_FALSE((launch_with_workspace(captured, small) == inside)); });
        CHECK(fake::live().device_allocations == 4);
        stream.synchronize();
        graph.reset();
        CHECK(fake::live().device_allocations == 2);
        CHECK((workspace_of(stream, small) == outside));
    }
    CHECK(fake::live().device_allocations == 1);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "branches of one capture do not share memory, and a launch that joins them does")
{
    const Stream stream;
    const Stream side;
    const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
        const HopperWorkspace before = launch_with_workspace(captured, small);
        const StreamRef branch = side;
        branch.wait(captured);
        CHECK((launch_with_workspace(branch, small) == before));
        CHECK_FALSE((launch_with_workspace(captured, small) == before));
        captured.wait(branch);
        const HopperWorkspace joined = launch_with_workspace(captured, small);
        CHECK((launch_with_workspace(captured, small) == joined));
    });
    CHECK(fake::live().device_allocations == 2);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "side streams created and destroyed during a capture do not share memory")
{
    const Stream stream;
    HopperWorkspace used[2]{};
    const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
        const Event fork(EventKind::ordering);
        fork.record(captured);
        for (HopperWorkspace& workspace : used) {
            const Stream side;
            side.wait(fork);
            workspace = launch_with_workspace(side, small);
            captured.wait(side);
        }
    });
    CHECK_FALSE((used[0] == used[1]));
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "no other launch uses the memory of a lease without a launch")
{
    const Stream stream;
    const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
        const HopperWorkspace unused = workspace_of(captured, small);
        CHECK_FALSE((launch_with_workspace(captured, small) == unused));
    });
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "CUDA is not queried for the id or device of a raw stream that is being captured")
{
    cudaStream_t raw = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaStreamBeginCapture(raw, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    fake::clear_calls();
    static_cast<void>(launch_with_workspace(StreamRef(raw), small));
    CHECK(fake::count("cudaStreamGetId") + fake::count("cudaStreamGetDevice") == 0);
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(raw, &graph) == cudaSuccess);
    REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
    REQUIRE(cudaStreamDestroy(raw) == cudaSuccess);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "destroying a stream during its capture leaves its memory and the capture intact")
{
    const Stream stream;
    std::optional<Stream> side{std::in_place};
    static_cast<void>(workspace_of(*side, small));
    const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
        side->wait(captured);
        static_cast<void>(launch_with_workspace(*side, small));
        captured.wait(*side);
        fake::clear_calls();
        side.reset();
        CHECK(fake::count("cudaStreamGetId") + fake::count("cudaFreeAsync") == 0);
    });
    CHECK(graph.node_count() == 1);
    CHECK(fake::live().device_allocations == 2);
    GemmPlan::release_workspaces();
    CHECK(fake::live().device_allocations == 1);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "the memory of an abandoned or broken capture is freed")
{
    const Stream stream;
    CHECK_THROWS_AS(static_cast<void>(Graph::capture(stream,
                                                     [&](StreamRef captured) {
                                                         static_cast<void>(workspace_of(captured, small));
                                                         throw std::runtime_error("stop");
                                                     })),
                    std::runtime_error);
    CHECK(fake::live().device_allocations == 0);
    const auto error = test::error_of([&] {
        static_cast<void>(Graph::capture(stream, [&](StreamRef captured) {
            static_cast<void>(workspace_of(captured, small));
            static_cast<void>(cudaStreamSynchronize(captured.get()));
            static_cast<void>(workspace_of(captured, small));
        }));
    });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::capture_violation);
    CHECK(fake::live().device_allocations == 0);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "a raw graph's memory stays while one of its executables exists")
{
    const Stream stream;
    REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    static_cast<void>(workspace_of(stream, small));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
    REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
    GemmPlan::release_workspaces();
    CHECK(fake::live().device_allocations == 1);
    REQUIRE(cudaGraphExecDestroy(executable) == cudaSuccess);
    CHECK(fake::live().device_allocations == 1);  // not freed yet, because the callback must not call CUDA
    GemmPlan::release_workspaces();
    CHECK(fake::live().device_allocations == 0);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "threads on different streams get different memory, on one stream the same")
{
    constexpr int threads = 4;
    const Stream shared;
    std::vector<HopperWorkspace> own(threads);
    std::vector<HopperWorkspace> common(threads);
    std::vector<Stream> streams(threads);
    std::vector<std::thread> workers;
    for (std::size_t i = 0; i < threads; ++i) {
        workers.emplace_back([&, i] {
            for (int round = 0; round < 50; ++round) {
                own[i] = workspace_of(streams[i], round % 2 == 0 ? small : large);
                common[i] = workspace_of(shared, large);
            }
        });
    }
    for (std::thread& worker : workers) {
        worker.join();
    }
    std::set<float*> distinct;
    for (std::size_t i = 0; i < threads; ++i) {
        distinct.insert(own[i].partials);
        CHECK((common[i] == common[0]));
    }
    CHECK(distinct.size() == threads);
    CHECK(fake::live().device_allocations == threads + 1);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "a caller's memory is used directly, with its counters cleared before each launch")
{
    const Stream stream;
    const WorkspaceNeed need{.partial_bytes = 1000, .counters = 10, .copy_bytes = 3000};
    DeviceBuffer<std::byte> memory(stream, detail::workspace_bytes(need));
    const auto caller = std::source_location::current();
    for (int launch = 0; launch < 2; ++launch) {
        CHECK(cudaMemsetAsync(memory.data(), 0xFF, memory.size(), stream.get()) == cudaSuccess);
        fake::clear_calls();
        detail::require_workspace(stream, memory.span(), need, "test", caller);
        const auto lease = detail::lease_workspace(stream, need, memory.span(), "test", caller);
        CHECK(fake::count("cudaMallocAsync") == 0);
        CHECK(fake::count("cudaMemsetAsync") == 1);
        const HopperWorkspace used = lease.memory();
        CHECK(counters_of(stream, used, need.counters) == std::vector<std::uint32_t>(need.counters, 0));
        CHECK(reinterpret_cast<std::byte*>(used.arrivals) == memory.data());
        CHECK(reinterpret_cast<std::uintptr_t>(used.partials) % 256 == 0);
        CHECK(used.copies + need.copy_bytes == memory.data() + memory.size());
        CHECK(reinterpret_cast<std::byte*>(used.partials) + need.partial_bytes <= used.copies);
        dirty_sums(stream, used, need.partial_bytes);
        CHECK(counters_of(stream, used, need.counters) == std::vector<std::uint32_t>(need.counters, 0));
    }
    fake::clear_calls();
    static_cast<void>(detail::lease_workspace(stream, {.copy_bytes = 3000}, memory.span(), "test", caller));
    CHECK(fake::count("cudaMemsetAsync") == 0);  // no counters, nothing to clear
    fake::fail_call("cudaMemsetAsync", 1, cudaErrorUnknown);
    CHECK_THROWS_AS(static_cast<void>(detail::lease_workspace(stream, need, memory.span(), "test", caller)), Error);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "unsuitable memory of a caller is refused with the values and the cure")
{
    const Stream stream;
    const Stream there{Device(fake::b200)};
    DeviceBuffer<std::byte> memory(stream, 4096);
    DeviceBuffer<std::byte> foreign(there, 4096);
    const WorkspaceNeed need{.partial_bytes = 1000, .counters = 10};
    const auto check = [&](const Workspace& workspace, std::source_location caller = std::source_location::current()) {
        detail::require_workspace(stream, workspace, need, "Gemm::launch", caller);
    };
    CHECK(detail::workspace_bytes(need) == 1280);
    check(memory.span());
    check(memory.subspan(256, 1280));
    check(Workspace());
    check(Workspace::at_most(1280));
    const std::string cure = "\n  try: ask the plan's workspace_bytes() for the size, or prepare a plan with a limit";
    CHECK_ERROR(
        "tessera: out_of_range in Gemm::launch\n  the launch needs a workspace of 1280 bytes, but the given one "
        "has 1279" +
            cure,
        check(memory.subspan(0, 1279)));
    CHECK_ERROR(
        "tessera: out_of_range in Gemm::launch\n  the launch needs a workspace of 1280 bytes, but the limit is 1000" +
            cure,
        check(Workspace::at_most(1000)));
    CHECK_ERROR(
        "tessera: out_of_range in Gemm::launch\n  the launch needs a workspace of 1280 bytes, but the given one "
        "has 0" +
            cure,
        check(DeviceSpan<std::byte>()));
    CHECK_ERROR(
        "tessera: device_mismatch in Gemm::launch\n  the stream belongs to device 0, but the workspace belongs to "
        "device 2\n  try: "
        "use "
        "a stream and memory of one device, or copy the data to device 0 first",
        check(foreign.span()));
    const auto error = test::error_of([&] { check(memory.subspan(128, 1280)); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::misaligned);
    CHECK(error->message().find("is not 256-byte aligned") != std::string_view::npos);
}

TEST_CASE_FIXTURE(WorkspaceRuntime, "the streams' memory comes from the set resource, if any, and goes back to it")
{
    struct Resource {
        std::map<void*, std::size_t> living;
        bool throws = false;
        void* allocate_async(std::size_t bytes, std::size_t, cudaStream_t stream)
        {
            if (throws) {
                throw std::bad_alloc();
            }
            void* memory = nullptr;
            CHECK(cudaMallocAsync(&memory, bytes, stream) == cudaSuccess);
            living[memory] = bytes;
            return memory;
        }
        void deallocate_async(void* memory, std::size_t bytes, std::size_t, cudaStream_t stream)
        {
            CHECK(living.at(memory) == bytes);
            living.erase(memory);
            CHECK(cudaFreeAsync(memory, stream) == cudaSuccess);
        }
    };
    Resource resource;
    const auto set = [&](MemoryResourceRef reference) {
        detail::set_workspace_resource(fake::h200, reference, "test", std::source_location::current());
    };
    {
        const Stream before;
        static_cast<void>(workspace_of(before, small));
        set(resource);
        CHECK(workspace_of(before, small).partials != nullptr);
        CHECK(resource.living.empty());  // existing memory stays
        const Stream stream;
        const Stream other{Device(fake::b200)};
        static_cast<void>(workspace_of(stream, small));
        static_cast<void>(workspace_of(other, small));  // the other device has its own
        CHECK(resource.living.size() == 1);
        static_cast<void>(workspace_of(stream, large));
        CHECK(resource.living.size() == 1);
        static_cast<void>(workspace_of(before, large));
        CHECK(resource.living.size() == 2);
        resource.throws = true;
        CHECK_THROWS_AS(static_cast<void>(workspace_of(stream, {.partial_bytes = 100'000})), std::bad_alloc);
        resource.throws = false;
        CHECK(resource.living.size() == 2);
        static_cast<void>(workspace_of(stream, large));
    }
    CHECK(resource.living.empty());
    const StreamRef standard = Device(fake::h200).default_stream();
    static_cast<void>(workspace_of(standard, small));
    CHECK(resource.living.size() == 1);
    set({});
    GemmPlan::release_workspaces();
    CHECK(resource.living.empty());
    static_cast<void>(workspace_of(standard, small));
    CHECK(resource.living.empty());
}

TEST_CASE("every problem has a Hopper kernel without a workspace, and a limit selects it")
{
    const DeviceProperties h200 = DeviceProperties::of_compute_capability(9, 0);
    if (!GemmPlan::refusal(GemmProblem{.m = 64, .n = 64, .k = 64, .input = ElementType::bf16}, h200, Variant::hopper)
             .empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    int limited = 0;
    for (const ElementType type : {ElementType::bf16, ElementType::tf32, ElementType::f8e4m3}) {
        for (const std::int64_t k : {64, 8192, 8191}) {  // TMA cannot load the last
            for (const std::int64_t m : {16, 512, 4096}) {
                for (const std::int64_t n : {8, 384, 5120}) {
                    const GemmProblem problem =
                        detail::resolved({.m = m, .n = n, .k = k, .input = type, .output = ElementType::f32});
                    CAPTURE(problem.describe());
                    const auto need = [&](std::size_t limit) {
                        const auto choice = detail::choose_untuned(problem, h200, Variant::hopper, "test",
                                                                   std::source_location::current(), limit);
                        CHECK(choice.variant == Variant::hopper);
                        return detail::workspace_bytes(detail::workspace_need(problem, choice));
                    };
                    const std::size_t wanted = need(detail::unlimited_workspace);
                    CHECK(need(0) == 0);
                    CHECK(need(wanted) == wanted);
                    if (wanted > 0) {
                        ++limited;
                        CHECK(need(wanted - 1) < wanted);
                    }
                }
            }
        }
    }
    CHECK(limited > 10);
}

TEST_CASE("whichever call of a workspace's life fails, nothing leaks, and the error is the fault's")
{
    const auto scenario = [] {
        const Stream stream;
        static_cast<void>(workspace_of(stream, small));
        static_cast<void>(workspace_of(stream, large));
        const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
            static_cast<void>(launch_with_workspace(captured, small));
            static_cast<void>(launch_with_workspace(captured, small));
            static_cast<void>(launch_with_workspace(captured, large));
        });
        const Stream plain{Device(fake::t4)};
        static_cast<void>(workspace_of(plain, small));
        static_cast<void>(workspace_of(plain, large));
    };
    int errors = 0;
    int nth = 1;
    for (;; ++nth) {
        fake::reset();
        static_cast<void>(dropped_errors());
        fake::fail_call(nth, cudaErrorMemoryAllocation);
        const auto error = test::error_of(scenario);
        const std::size_t dropped = dropped_errors().size();
        if (!fake::fault_occurred()) {
            CHECK_FALSE(error.has_value());
            break;
        }
        const std::string call = fake::calls()[static_cast<std::size_t>(nth) - 1].name;
        CAPTURE(nth);
        CAPTURE(call);
        errors += error.has_value() ? 1 : 0;
        if (error.has_value()) {
            CHECK(error->code() == ErrorCode::out_of_memory);
        } else {
            CHECK((dropped > 0 || call == "cudaStreamIsCapturing"));
        }
        GemmPlan::release_workspaces();
        CHECK(fake::live() == fake::Live{});
        CHECK(fake::misuses() == std::vector<std::string>{});
        static_cast<void>(cudaGetLastError());
    }
    CHECK(errors > 20);
    CHECK(nth > 50);
    fake::reset();
    static_cast<void>(dropped_errors());
}
