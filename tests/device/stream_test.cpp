/// Streams, events, graphs, launches and threads with the real runtime. Needs a device.

#include <doctest/doctest.h>

#include <atomic>
#include <set>

#include "device_fixture.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

using SimpleProduct = std::vector<float>;

/// Returns a row-major matrix of small integers, so that products are exact.
std::vector<float> small_integers(std::int64_t size, std::uint64_t salt)
{
    std::vector<float> elements;
    for (std::int64_t i = 0; i < size; ++i) {
        elements.push_back(static_cast<float>(hash(seed(), salt, static_cast<std::uint64_t>(i)) % 15) - 7);
    }
    return elements;
}

SimpleProduct exact_product(const std::vector<float>& a, const std::vector<float>& b, std::int64_t m, std::int64_t n,
                            std::int64_t k)
{
    SimpleProduct d(static_cast<std::size_t>(m * n));
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t l = 0; l < k; ++l) {
                d[static_cast<std::size_t>(i * n + j)] +=
                    a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(l * n + j)];
            }
        }
    }
    return d;
}

}  // namespace

TEST_CASE("a stream that waits for another runs after it, and done() reports it")
{
    if (!Gate::can_be_used()) {
        return;
    }
    const Stream first;
    const Stream second;
    Gate gate;
    DeviceBuffer<float> buffer(first, 1000);
    DeviceBuffer<float> result(second, 1000);
    gate.close(first);
    buffer.fill(first, 3.0F);
    CHECK_FALSE(first.done());
    CHECK(second.done());
    second.wait(first);
    launch(add_kernel(), LaunchConfig::covering(second, 1000), DisjointSpan(result), buffer.span(), 1.0F);
    buffer.used_on(second);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_FALSE(second.done());
    gate.open();
    CHECK(result.to_vector() == std::vector<float>(1000, 4.0F));
    first.synchronize();
    CHECK(first.done());
    CHECK_FALSE(gate.timed_out());
}

TEST_CASE("streams that do not wait for each other overlap")
{
    if (!Gate::can_be_used()) {
        return;
    }
    const Stream held;
    const Stream free;
    Gate gate;
    gate.close(held);
    DeviceBuffer<float> buffer(free, 1000);
    buffer.fill(free, 1.5F);
    CHECK(buffer.to_vector() == std::vector<float>(1000, 1.5F));
    CHECK_FALSE(held.done());
    gate.open();
    held.synchronize();
    CHECK_FALSE(gate.timed_out());
}

TEST_CASE("an event completes after the work before it, and timing events measure that work")
{
    if (!Gate::can_be_used()) {
        return;
    }
    const Stream stream;
    const Event start(EventKind::timing);
    const Event end(EventKind::timing);
    const Event ordering;
    Gate gate;
    CHECK(ordering.done());  // never recorded
    CHECK(code_of([&] { static_cast<void>(end.seconds_since(start)); }) == ErrorCode::invalid_argument);
    start.record(stream);
    gate.close(stream);
    end.record(stream);
    ordering.record(stream);
    CHECK_FALSE(ordering.done());
    CHECK(code_of([&] { static_cast<void>(end.seconds_since(start)); }) == ErrorCode::invalid_argument);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    start.synchronize();
    const auto before = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::chrono::duration<double> slept = std::chrono::steady_clock::now() - before;
    gate.open();
    end.synchronize();
    ordering.synchronize();
    CHECK(ordering.done());
    // The gate was closed while this thread slept. The two clocks differ slightly.
    CHECK(end.seconds_since(start) > slept.count() / 2);
    CHECK(code_of([&] { static_cast<void>(ordering.seconds_since(start)); }) == ErrorCode::invalid_argument);
    CHECK_FALSE(gate.timed_out());
}

TEST_CASE("a captured Gemm::launch is one kernel node, and each replay computes")
{
    constexpr std::int64_t m = 65;
    constexpr std::int64_t n = 33;
    constexpr std::int64_t k = 20;
    const Stream stream;
    const auto host_a = small_integers(m * k, 1);
    const auto host_b = small_integers(k * n, 2);
    auto a = DeviceBuffer<float>::from_host(stream, host_a);
    const auto b = DeviceBuffer<float>::from_host(stream, host_b);
    DeviceBuffer<float> d(stream, m * n);
    d.fill(stream, -1.0F);
    for (const Variant variant : {Variant::automatic, Variant::simt_naive, Variant::simt_register_blocked}) {
        const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
            Gemm::launch(captured, a.matrix(m, k), b.matrix(k, n), d.matrix(m, n), {}, variant);
        });
        REQUIRE(graph.node_count() == 1);
        cudaGraphNode_t node = nullptr;
        std::size_t count = 1;
        REQUIRE(cudaGraphGetNodes(graph.get(), &node, &count) == cudaSuccess);
        cudaGraphNodeType type{};
        REQUIRE(cudaGraphNodeGetType(node, &type) == cudaSuccess);
        CHECK(type == cudaGraphNodeTypeKernel);
        for (const float factor : {1.0F, 2.0F}) {
            std::vector<float> scaled = host_a;
            std::transform(scaled.begin(), scaled.end(), scaled.begin(), [&](float x) { return factor * x; });
            a.copy_from(scaled);
            graph.launch(stream);
            CHECK(d.to_vector() == exact_product(scaled, host_b, m, n, k));
        }
    }
}

TEST_CASE("fills, asynchronous copies and forked streams can be captured")
{
    const Stream stream;
    const Stream side;
    PinnedBuffer<float> target(100);
    DeviceBuffer<float> buffer(stream, 100);
    const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
        buffer.fill(captured, 2.5F);
        side.wait(captured);
        buffer.copy_to_async(side, target);
        captured.wait(side);
    });
    CHECK(graph.node_count() == 2);
    graph.launch(stream);
    stream.synchronize();
    CHECK(std::all_of(target.begin(), target.end(), [](float x) { return x == 2.5F; }));
}

TEST_CASE("operations that cannot be captured are refused, and the stream stays usable")
{
    const Stream stream;
    DeviceBuffer<int> buffer(stream, 100);
    const std::vector<int> numbers = counted(100);
    const auto capture = [&](const auto& work) { return code_of([&] { Graph::capture(stream, work); }); };
    CHECK(capture([&](StreamRef) { buffer.copy_from(numbers); }) == ErrorCode::capture_violation);
    CHECK(capture([&](StreamRef) { static_cast<void>(buffer.to_vector()); }) == ErrorCode::capture_violation);
    CHECK(capture([&](StreamRef s) { const DeviceBuffer<int> plain(s, 10, Allocation::plain); }) ==
          ErrorCode::capture_violation);
    CHECK(capture([&](StreamRef s) { s.synchronize(); }) == ErrorCode::capture_violation);
    CHECK(capture([&](StreamRef s) { Graph::capture(s, [](StreamRef) {}); }) == ErrorCode::capture_violation);
    CHECK(code_of([&] { Graph::capture(Device::current().default_stream(), [](StreamRef) {}); }) ==
          ErrorCode::capture_violation);
    CHECK_THROWS_AS(Graph::capture(stream, [](StreamRef) { throw std::string("mine"); }), std::string);
    CHECK_FALSE(StreamRef(stream).is_capturing());
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    buffer.copy_from(numbers);
    CHECK(buffer.to_vector() == numbers);
}

TEST_CASE("launch runs users' kernels: one element per thread, grid loops, empty launches")
{
    const Stream stream;
    for (const std::size_t size : {std::size_t{1}, std::size_t{255}, std::size_t{257}, std::size_t{100003}}) {
        DeviceBuffer<std::uint32_t> buffer(stream, size);
        std::vector<std::uint32_t> expected(size);
        std::iota(expected.begin(), expected.end(), 0U);
        for (const LaunchConfig& config :
             {LaunchConfig::covering(stream, size), LaunchConfig(stream, {3, 2, 2}, {8, 4, 2})}) {
            buffer.fill(stream, 0xFFFFFFFFU);
            launch(iota_kernel(), config, DisjointSpan(buffer));
            CHECK(buffer.to_vector() == expected);
        }
    }
    DeviceBuffer<std::uint32_t> nothing(stream, 0);
    launch(iota_kernel(), LaunchConfig::covering(stream, 0), DisjointSpan(nothing));
    stream.synchronize();
}

TEST_CASE("a kernel may use dynamic shared memory up to the device's limit")
{
    const Stream stream;
    const std::size_t limit = Device::current().properties().shared_memory_per_block_bytes;
    DeviceBuffer<std::uint32_t> out(stream, 4);
    for (const std::size_t bytes : {std::size_t{1024}, std::size_t{48} << 10U, limit}) {
        const auto words = static_cast<unsigned>(bytes / sizeof(std::uint32_t));
        launch(shared_memory_kernel(), LaunchConfig(stream, {4}, {128}).shared_memory_bytes(bytes), out.span(), words);
        CHECK(out.to_vector() == std::vector<std::uint32_t>{words, 2 * words, 3 * words, 4 * words});
    }
    CHECK(code_of([&] {
              launch(shared_memory_kernel(), LaunchConfig(stream, {4}, {128}).shared_memory_bytes(limit + 1024),
                     out.span(), 1U);
          }) == ErrorCode::launch_refused);
}

TEST_CASE("clusters run together if the device supports them, and are refused otherwise")
{
    const Stream stream;
    DeviceBuffer<std::uint32_t> out(stream, 8);
    if (!Device::current().properties().has_clusters) {
        CHECK(code_of([&] { launch(cluster_kernel(), LaunchConfig(stream, {8}, {32}).cluster({4}), out.span()); }) ==
              ErrorCode::unsupported_device);
        return;
    }
    launch(cluster_kernel(), LaunchConfig(stream, {8}, {32}).cluster({4}), out.span());
    CHECK(out.to_vector() == std::vector<std::uint32_t>{4003, 4000, 4001, 4002, 4003, 4000, 4001, 4002});
    CHECK(code_of([&] { launch(cluster_kernel(), LaunchConfig(stream, {8}, {32}).cluster({3}), out.span()); }) ==
          ErrorCode::launch_refused);
    CHECK(code_of([&] { launch(cluster_kernel(), LaunchConfig(stream, {64}, {32}).cluster({64}), out.span()); }) ==
          ErrorCode::launch_refused);
}

TEST_CASE("all CTAs of a cooperative launch meet at a barrier, and a grid too large for that is refused")
{
    const Stream stream;
    DeviceBuffer<std::uint32_t> out(stream, 64);
    launch(grid_barrier_kernel(), LaunchConfig(stream, {64}, {1}).cooperative(), out.span());
    std::vector<std::uint32_t> expected(64);
    for (std::uint32_t i = 0; i < 64; ++i) {
        expected[i] = (i + 1) % 64;
    }
    CHECK(out.to_vector() == expected);
    CHECK(code_of([&] {
              launch(grid_barrier_kernel(), LaunchConfig(stream, {1U << 20}, {1}).cooperative(), out.span());
          }) == ErrorCode::launch_refused);
}

TEST_CASE("a kernel that may start early waits for the previous one where it asks to")
{
    if (Device::current().properties().compute_capability() < 90) {
        return;
    }
    const Stream stream;
    DeviceBuffer<std::uint32_t> data(stream, 32);
    data.fill(stream, 0);
    std::uint32_t expected = 0;
    for (int round = 0; round < 8; ++round) {
        launch(increment_kernel(), LaunchConfig(stream, {32}, {1}).programmatic_dependent_launch(), data.span());
        launch(double_kernel(), LaunchConfig(stream, {32}, {1}).programmatic_dependent_launch(), data.span());
        expected = 2 * (expected + 1);
        stream.synchronize();  // increment_kernel does not wait for the previous round
    }
    CHECK(data.to_vector() == std::vector<std::uint32_t>(32, expected));
}

TEST_CASE("an impossible launch is refused with the kernel's name and leaves no pending error")
{
    const Stream stream;
    DeviceBuffer<std::uint32_t> out(stream, 64);
    const auto refused = [&](auto kernel, const LaunchConfig& config) {
        try {
            launch(kernel, config, out.span());
        } catch (const Error& error) {
            CHECK(cudaPeekAtLastError() == cudaSuccess);
            CHECK(error.message().find("kernel ") != std::string_view::npos);
            return error.code() == ErrorCode::launch_refused;
        }
        return false;
    };
    CHECK(refused(bounded_kernel(), LaunchConfig(stream, {1}, {65})));
    CHECK(refused(bounded_kernel(), LaunchConfig(stream, {1}, {2048})));
    CHECK(refused(bounded_kernel(), LaunchConfig(stream, {1}, {1, 1, 65})));
    CHECK(refused(bounded_kernel(), LaunchConfig(stream, {0}, {64})));
    CHECK(refused(bounded_kernel(), LaunchConfig(stream, {1}, {0})));
    CHECK(refused(bounded_kernel(), LaunchConfig(stream, {1, 65536}, {1})));
    CHECK(refused(bounded_kernel(), LaunchConfig(stream, {0x80000000U}, {1})));
    try {
        launch(bounded_kernel(), LaunchConfig(stream, {1}, {65}), out.span());
    } catch (const Error& error) {
        CHECK(error.message().find("small_blocks_only") != std::string_view::npos);
        CHECK(error.message().find("at most 64") != std::string_view::npos);
    }
    launch(bounded_kernel(), LaunchConfig(stream, {1}, {64}), out.span());
    CHECK(out.to_vector() == std::vector<std::uint32_t>(64, 1));
}

TEST_CASE("several threads can launch products, each on its own stream")
{
    constexpr std::int64_t extent = 96;
    constexpr int threads = 8;
    std::atomic<int> right = 0;
    std::vector<std::jthread> workers;
    for (std::uint64_t t = 0; t < threads; ++t) {
        workers.emplace_back([&right, t] {
            const Stream stream;
            const auto host_a = small_integers(extent * extent, 10 + t);
            const auto host_b = small_integers(extent * extent, 50 + t);
            const auto a = DeviceBuffer<float>::from_host(stream, host_a);
            const auto b = DeviceBuffer<float>::from_host(stream, host_b);
            const SimpleProduct expected = exact_product(host_a, host_b, extent, extent, extent);
            DeviceBuffer<float> d(stream, extent * extent);
            for (int i = 0; i < 20; ++i) {
                d.fill(stream, -1.0F);
                Gemm::launch(stream, a.matrix(extent, extent), b.matrix(extent, extent), d.matrix(extent, extent));
                right += d.to_vector() == expected;
            }
        });
    }
    workers.clear();  // joins
    CHECK(right == threads * 20);
}

TEST_CASE("several threads can launch on one stream")
{
    constexpr std::int64_t extent = 40;
    const Stream stream;
    const auto host = small_integers(extent * extent, 3);
    const auto a = DeviceBuffer<float>::from_host(stream, host);
    const SimpleProduct expected = exact_product(host, host, extent, extent, extent);
    std::vector<DeviceBuffer<float>> outputs;
    for (int t = 0; t < 8; ++t) {
        outputs.emplace_back(stream, extent * extent);
    }
    {
        std::vector<std::jthread> workers;
        for (auto& d : outputs) {
            workers.emplace_back([&] {
                for (int i = 0; i < 50; ++i) {
                    Gemm::launch(stream, a.matrix(extent, extent), a.matrix(extent, extent), d.matrix(extent, extent));
                }
            });
        }
    }
    for (const auto& d : outputs) {
        CHECK(d.to_vector() == expected);
    }
}

TEST_CASE("a stream can be adopted and released, and a default stream works")
{
    cudaStream_t raw = nullptr;
    REQUIRE(cudaStreamCreate(&raw) == cudaSuccess);
    Stream stream = Stream::adopt(raw);
    CHECK(stream.get() == raw);
    CHECK(StreamRef(raw).device() == stream.device());
    REQUIRE(std::move(stream).release() == raw);
    CHECK(cudaStreamDestroy(raw) == cudaSuccess);
    const StreamRef standard = Device::current().default_stream();
    const auto buffer = DeviceBuffer<int>::from_host(standard, counted(10));
    CHECK(buffer.to_vector() == counted(10));
}

TEST_CASE("device properties are those that the runtime reports")
{
    const Device device = Device::current();
    cudaDeviceProp native{};
    REQUIRE(cudaGetDeviceProperties(&native, device.ordinal()) == cudaSuccess);
    CHECK(device.properties().name == native.name);
    CHECK(device.properties().compute_capability() == 10 * native.major + native.minor);
    CHECK(device.properties().sm_count == native.multiProcessorCount);
    CHECK(device.properties().memory_bytes == native.totalGlobalMem);
    CHECK(device.free_memory_bytes() <= native.totalGlobalMem);
    CHECK(code_of([] { static_cast<void>(Device(Device::count())); }) == ErrorCode::out_of_range);
}

TEST_CASE("memory, streams and events of two devices are distinguished")
{
    if (Device::count() < 2) {
        MESSAGE("skipped: there is only one device");
        return;
    }
    const Stream here(Device(0));
    const Stream there(Device(1));
    auto buffer = DeviceBuffer<float>::from_host(here, std::vector<float>(100, 7.0F));
    DeviceBuffer<float> other(there, 100);
    CHECK(code_of([&] { buffer.fill(there, 1.0F); }) == ErrorCode::device_mismatch);
    CHECK(code_of([&] { Event(Device(0)).record(there); }) == ErrorCode::device_mismatch);
    CHECK(code_of([&] { Gemm::launch(there, buffer.matrix(10, 10), other.matrix(10, 10), other.matrix(10, 10)); }) ==
          ErrorCode::device_mismatch);
    there.wait(here);
    other.copy_from_async(there, buffer.span());  // a peer copy
    buffer.used_on(there);
    CHECK(other.to_vector() == std::vector<float>(100, 7.0F));
    CHECK(Device::current().ordinal() == 0);
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
